"""Checks of what a caller passes in: an error names the argument, its value and what would be right."""

from numbers import Real

import numpy as np


def positive(name, value):
    """Return `value` as a float (or an array of floats), refusing what is not a finite number above zero.

    value : number, array of numbers, or lists of numbers, any shape; the shape is kept.

    Raises ValueError naming the argument and the first bad value. Text, True and None are no numbers.

    >>> positive("m", 256)
    256.0
    >>> positive("m", -1)
    Traceback (most recent call last):
    ...
    ValueError: m must be a finite number above 0, got -1
    """
    try:
        if not _real(value):
            raise TypeError
        given = np.asarray(value)
        numbers = given.astype(float)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{name} must be a number or an array of numbers, got {value!r}") from None
    good = np.isfinite(numbers) & (numbers > 0)
    if not good.all():
        raise ValueError(f"{name} must be a finite number above 0, got {given[~good][0]}")
    return float(numbers) if numbers.ndim == 0 else numbers


def _real(value):
    """Say whether `value` holds nothing but real numbers: numpy would make numbers of "256" and True without a word."""
    if hasattr(value, "__array__"):
        return np.asarray(value).dtype.kind in "iuf"
    if isinstance(value, (list, tuple, range)):
        return all(map(_real, value))
    return isinstance(value, Real) and not isinstance(value, bool)


def one_of(name, value, known):
    """Return `value` if it is among `known`; else raise ValueError listing what is known.

    >>> one_of("format", "fp7", ["bf16", "fp8"])
    Traceback (most recent call last):
    ...
    ValueError: unknown format 'fp7'; known: bf16, fp8
    """
    if not isinstance(value, str) or value not in known:
        raise ValueError(f"unknown {name} {value!r}; known: {', '.join(known)}")
    return value
