"""The experiments of lesson 05: one block that is rounded, and the error of a matrix product in a low precision.

All data are drawn with a fixed seed, so every reader sees the same numbers.
"""

from dataclasses import replace
from functools import cache

import numpy as np

from cotune.formats import dequantize, format_named, quantize

SEED = 5
TOKENS, OUTPUTS, INPUTS = 128, 256, 1024
ROTATED = 128  # neighbouring inputs that one rotation mixes
OUTLIERS, TIMES = 8, 30  # inputs that are larger than the others for every token, and how many times
DATA = {
    "normal": "normal values",
    "heavy": "heavy tails",
    "outliers": "outlier inputs",
}


def one_block(largest):
    """Return 32 values in [-1, 1] and, in the fifth place, `largest`."""
    values = np.random.default_rng(SEED).uniform(-1, 1, 32).astype(np.float32)
    values[4] = largest
    return values


def rounded(values, format):
    """Return the values as a format keeps them: quantized along the last axis, and back."""
    return dequantize(quantize(values, format))


def relative_error(got, right):
    """Return |got - right| / |right|, with the root of the sum of squares as size."""
    return float(np.linalg.norm(got - right) / np.linalg.norm(right))


@cache
def operands(data):
    """Return (activations T x K, weights N x K) of a named kind of DATA; weights are always normal.

    "normal": standard normal. "heavy": Student's t with three degrees of freedom, whose fourth moment is infinite.
    "outliers": normal, but a few inputs are many times larger for all tokens, as trained models have them.
    """
    rng = np.random.default_rng(SEED)
    weights = rng.standard_normal((OUTPUTS, INPUTS))
    if data == "heavy":
        return rng.standard_t(3, (TOKENS, INPUTS)), weights
    activations = rng.standard_normal((TOKENS, INPUTS))
    if data == "outliers":
        activations[:, rng.choice(INPUTS, OUTLIERS, replace=False)] *= TIMES
    return activations, weights


def hadamard(size):
    """Return the size x size Hadamard matrix over sqrt(size), a rotation; `size` is a power of two (Sylvester).

    >>> hadamard(2) * 2**0.5
    array([[ 1.,  1.],
           [ 1., -1.]])
    """
    matrix = np.ones((1, 1))
    while len(matrix) < size:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    return matrix / np.sqrt(size)


def rotate(values):
    """Return the values after a random Hadamard rotation of every ROTATED inputs: random signs, then the matrix.

    Activations and weights rotated alike have the same product as before.
    """
    signs = np.random.default_rng(SEED).choice([-1.0, 1.0], values.shape[-1])
    parts = (values * signs).reshape(*values.shape[:-1], -1, ROTATED)
    return (parts @ hadamard(ROTATED)).reshape(values.shape)


def blocked(format, block):
    """Return a format of the same elements and scales with another number of elements in a block."""
    return replace(format_named(format), block=block)


@cache
def product_error(data, format, block=None, rotation=False):
    """Return the relative error of activations times weights, both rounded to a format before the product.

    block : elements that share a scale, else the format's own; rotation : rotate both before they are rounded.
    """
    activations, weights = operands(data)
    right = activations @ weights.T
    if rotation:
        activations, weights = rotate(activations), rotate(weights)
    kind = blocked(format, block) if block else format
    a, b = (rounded(x.astype(np.float32), kind).astype(float) for x in (activations, weights))
    return relative_error(a @ b.T, right)
