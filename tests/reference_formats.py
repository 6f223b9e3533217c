"""Number formats from their specifications, code by code, in double precision: slow, and nothing shared with cotune.

Every FP32 number and every midpoint of two neighbours is exact in double precision, so nearest and ties are exact.
Sources: OCP Microscaling Formats 1.0 (2023-09), tables 1, 2, 5 and 7; OCP 8-bit Floating Point 1.0 (2023-06).
"""

import numpy as np


def decoded(exponent_bits, mantissa_bits, bias, *, special):
    """Value of every code without its sign: 2^(E - bias) (1 + M / 2^m), or 2^(1 - bias) (M / 2^m) where E = 0."""
    values = []
    for code in range(1 << (exponent_bits + mantissa_bits)):
        exponent, mantissa = divmod(code, 1 << mantissa_bits)
        part = mantissa / (1 << mantissa_bits)
        value = 2.0 ** (exponent - bias) * (1 + part) if exponent else 2.0 ** (1 - bias) * part
        values.append(special(code, value))
    return np.array(values)


def all_are_numbers(code, value):
    return value


def last_is_nan(code, value):
    return np.nan if code == 0x7F else value


def ieee(code, value):
    return value if code < 0x7C else np.inf if code == 0x7C else np.nan


E2M1 = decoded(2, 1, 1, special=all_are_numbers)
E4M3 = decoded(4, 3, 7, special=last_is_nan)
E5M2 = decoded(5, 2, 15, special=ieee)
MAGNITUDES = {"float4_e2m1fn": E2M1, "float8_e4m3fn": E4M3, "float8_e5m2": E5M2}


def codes(values, name):
    """Code of each value: the nearest, of two equally near ones the even code, beyond the largest that one."""
    table = MAGNITUDES[name]
    finite = table[np.isfinite(table)]
    middles = (finite[1:] + finite[:-1]) / 2
    with np.errstate(invalid="ignore"):  # signalling NaN
        size = np.abs(values.astype(np.float64))
    code = np.searchsorted(middles, size, side="left")
    tied = (code < middles.size) & (size == middles[np.minimum(code, middles.size - 1)])
    code = np.where(tied & (code % 2 == 1), code + 1, code)
    code = np.where(np.isnan(size), int(np.argmax(np.isnan(table))) if np.isnan(table).any() else 0, code)
    sign = np.signbit(values).astype(int) * table.size
    return (code + sign).astype(np.uint8)


def values_of(codes_, name):
    """Value of each code, its sign in the bit above the magnitude."""
    table = MAGNITUDES[name]
    return np.where(codes_ >= table.size, -1.0, 1.0) * table[codes_ % table.size]


def mx(values, name, block, largest_exponent):
    """(codes, scale codes) of an MX format: section 6.3 of its specification."""
    blocks = values.reshape(-1, block).astype(np.float64)
    largest = np.abs(blocks).max(axis=1)
    exponent = np.where(largest > 0, np.floor(np.log2(np.where(largest > 0, largest, 1))), -np.inf) - largest_exponent
    exponent = np.clip(exponent, -127, 127)
    return codes((blocks / 2.0 ** exponent[:, None]).reshape(values.shape), name), (exponent + 127).astype(np.uint8)


def nvfp4(values, tensor_scale, block=16):
    """(codes, scale codes) of NVFP4, its quotients rounded to FP32 one after the other."""
    blocks = values.reshape(-1, block)
    total = np.float32(tensor_scale)
    with np.errstate(over="ignore", under="ignore"):
        wanted = (np.abs(blocks).max(axis=1) / np.float32(6)) / total
    scale = codes(wanted, "float8_e4m3fn")
    factor = values_of(scale, "float8_e4m3fn").astype(np.float32) * total
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        quotient = np.where(factor[:, None] > 0, blocks / factor[:, None], blocks * np.float32(0))
    return codes(quotient.reshape(values.shape), "float4_e2m1fn"), scale
