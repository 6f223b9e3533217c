"""One linear layer as a matrix product C[M,N] = A[M,K] B[K,N]: M tokens, N outputs, K inputs.

A holds the activations, B the weights, C the result; each has its own number format.
All sizes may be numbers or arrays that broadcast. The time here is `ideal`: datasheet peak and bandwidth.
"""

from dataclasses import dataclass

import numpy as np

from cotune import roofline
from cotune.arguments import positive
from cotune.formats import format_named, multiply_unit
from cotune.roofline import Work


@dataclass(frozen=True)
class Traffic:
    """Bytes one GEMM moves to and from HBM, every operand once: `read_a`, `read_b`, `write_c`."""

    read_a: float
    read_b: float
    write_c: float

    @property
    def read(self):
        return self.read_a + self.read_b

    @property
    def total(self):
        return self.read + self.write_c


def flops(m, n, k):
    """Return 2 M N K: one multiplication and one addition per output and input.

    >>> f"{flops(256, 8192, 512) / 15e15 * 1e6:.2f}"  # us of math on GB300, as NVIDIA 2026-07-10, Table 2 prints it
    '0.14'
    """
    return 2 * positive("m", m) * positive("n", n) * positive("k", k)


def traffic(m, n, k, *, a, b, c):
    """Return the Traffic M K b_A + N K b_B + M N b_C with b in bytes per element, block scales included.

    a, b, c : formats of A, B and C.

    >>> t = traffic(2048, 8192, 512, a="nvfp4", b="nvfp4", c="fp8")
    >>> f"{t.read / 8e12 * 1e6:.2f} {t.write_c / 8e12 * 1e6:.2f}"  # us on GB300, as Table 2 prints them
    '0.37 2.10'
    """
    m, n, k = positive("m", m), positive("n", n), positive("k", k)
    return Traffic(
        read_a=m * k * format_named(a).bytes_per_element,
        read_b=n * k * format_named(b).bytes_per_element,
        write_c=m * n * format_named(c).bytes_per_element,
    )


def work(m, n, k, *, a, b, c):
    """Return the Work of one GEMM: its FLOP and its HBM bytes."""
    return Work(flops(m, n, k), traffic(m, n, k, a=a, b=b, c=c).total)


def intensity(m, n, k, *, a, b, c):
    """Return the arithmetic intensity 2MNK / (M K b_A + N K b_B + M N b_C) in FLOP/B.

    >>> round(intensity(4096, 4096, 4096, a="bf16", b="bf16", c="bf16"), 2)  # a square: 2H / 3b
    1365.33
    """
    return work(m, n, k, a=a, b=b, c=c).intensity


def time(m, n, k, chip, *, a, b, c):
    """Return the ideal roofline.Time of one GEMM in seconds, with its bound.

    chip : Chip or its id.
    Errors: ValueError for an unknown chip or format, a chip that cannot multiply that format, a size not above 0.

    >>> time(2048, 8192, 512, "gb300", a="nvfp4", b="nvfp4", c="fp8").bound
    'memory'
    """
    return roofline.time(work(m, n, k, a=a, b=b, c=c), chip, multiply_unit(a, b))


def tokens_at_ridge(n, k, chip, *, a, b, c):
    """Return the M at which the intensity of an (N, K) layer reaches the ridge point; inf where it never does.

    2 M N K = R (M K b_A + N K b_B + M N b_C), so M = R b_B N K / (2 N K - R (K b_A + N b_C)).
    For large N and K this is the rule of thumb M* = R b_B / 2.

    >>> round(tokens_at_ridge(1e9, 1e9, "gb300", a="bf16", b="bf16", c="bf16"), 1)
    312.5
    """
    n, k = np.asarray(positive("n", n)), np.asarray(positive("k", k))
    r = roofline.ridge(chip, multiply_unit(a, b))
    b_a, b_b, b_c = (format_named(f).bytes_per_element for f in (a, b, c))
    room = 2 * n * k - r * (k * b_a + n * b_c)
    tokens = np.where(room > 0, r * b_b * n * k / np.where(room > 0, room, 1), np.inf)
    return float(tokens) if tokens.ndim == 0 else tokens


def linear_layers(tokens, hidden, ffn):
    """Return the four GEMMs of a plain transformer block as {name: (M, N, K)}.

    tokens : T; hidden : H; ffn : H', the width of the feed-forward layer.
    Source: NVIDIA, AI Model Co-Design (2026-07-10), Table 1.

    >>> linear_layers(256, 8192, 512)["FFN-2"]
    (256, 8192, 512)
    """
    tokens, hidden, ffn = (
        value if isinstance(value, int) and value > 0 and value is not True else positive(name, value)
        for name, value in (("tokens", tokens), ("hidden", hidden), ("ffn", ffn))
    )
    return {
        "QKV": (tokens, 3 * hidden, hidden),
        "attention output": (tokens, hidden, hidden),
        "FFN-1": (tokens, ffn, hidden),
        "FFN-2": (tokens, hidden, ffn),
    }
