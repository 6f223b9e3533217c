"""Measured latencies: read, filtered, and set beside the ideal roofline.

The tables lie in data/silicon with their source and licence. Files hold microseconds, a Table holds seconds.
"""

import csv
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType

import numpy as np

from cotune import gemm, layer, roofline
from cotune.arguments import one_of
from cotune.chip import chip_named
from cotune.model import Full, Layer
from cotune.parameters import KERNELS
from cotune.roofline import Time
from cotune.units import MICRO

FOLDER = Path(__file__).parent / "data" / "silicon"

# Kernel, and formats of A, B and C, behind each dtype of gemm.csv. C is BF16 in all of them: the collector that
# measured the table (ai-dynamo/aiconfigurator, collector/trtllm/collect_gemm.py) builds every layer with BF16 inputs
# and outputs.
KERNEL_OF = {"bfloat16": "bf16", "fp8": "fp8", "fp8_block": "fp8_block", "nvfp4": "nvfp4"}
OPERANDS = {dtype: (KERNELS[k].a, KERNELS[k].b, KERNELS[k].c) for dtype, k in KERNEL_OF.items()}

# Format of the KV cache behind each dtype of decode_gqa.csv; queries, new keys and results are BF16.
KV_FORMATS = {"bfloat16": "bf16", "fp8": "fp8"}


@dataclass(frozen=True)
class Column:
    """One column of a file: its `header` there, its `name` in the Table, and `read`, which turns text into a value."""

    header: str
    name: str
    read: Callable


@dataclass(frozen=True, eq=False)
class Table:
    """Measured rows as read-only numpy columns of equal length.

    columns : what was read, in order; data : {name: array}. `table["m"]` is one column, `len(table)` the rows.
    """

    columns: tuple[Column, ...]
    data: Mapping[str, np.ndarray]

    def __len__(self):
        return len(self.data[self.columns[0].name])

    def __getitem__(self, name):
        return self.data[one_of("column", name, self.data)]

    def where(self, **wanted):
        """Return the rows that fit every `name=wanted`; possibly none.

        wanted : a value, an iterable of values, or a function from the column to a mask.
        Errors: ValueError for an unknown column, a value that the column cannot hold, or what is not a mask.

        >>> len(gemm_table().where(chip="gb300", dtype="nvfp4", m=lambda m: m >= 512))
        456
        """
        keep = np.ones(len(self), bool)
        for name, value in wanted.items():
            keep &= self._mask(name, value) if callable(value) else np.isin(self[name], self._values(name, value))
        return _table(self.columns, {name: column[keep] for name, column in self.data.items()})

    def _mask(self, name, function):
        mask = np.asarray(function(self[name]))
        if mask.dtype != bool or mask.shape != (len(self),):
            got = f"{mask.dtype} of shape {mask.shape}"
            raise ValueError(f"column {name}: the function must return a mask, True or False per row; got {got}")
        return mask

    def _values(self, name, value):
        """Return what `name` may be, as a list; text is read as the file's own text would be."""
        value = value.tolist() if isinstance(value, np.ndarray) else value
        values = [value] if isinstance(value, str) or not isinstance(value, Iterable) else value
        return [self._value(name, v) for v in values]

    def _value(self, name, value):
        """Return one value of `name`. A number is in the unit of the Table; it need only look right to the reader."""
        read = next(c.read for c in self.columns if c.name == name)
        number = not isinstance(value, str) and self[name].dtype.kind != "U"
        try:
            got = read(str(value) if number else value)
        except ValueError as error:
            raise ValueError(f"column {name}: {error}") from None
        return value if number else got


def read_table(path, columns):
    """Return the Table in a CSV file whose header has exactly the `columns`, in any order.

    Errors: ValueError naming file, line and column of the first cell that cannot be used. No row is skipped.
    """
    header, lines = _read_rows(Path(path))
    for column in columns:
        if header.count(column.header) != 1:
            found = "is missing" if column.header not in header else "appears twice"
            raise ValueError(f"{path} line 1: column {column.header} {found}; found: {', '.join(header)}")
    surplus = [name for name in header if name not in {c.header for c in columns}]
    if surplus:
        raise ValueError(f"{path} line 1: unknown column {surplus[0]!r}")
    for line, row in lines:
        if len(row) != len(header):
            raise ValueError(f"{path} line {line}: {len(row)} values where the header has {len(header)}")
    return _table(columns, {c.name: _read_column(path, c, header.index(c.header), lines) for c in columns})


def _read_rows(path):
    """Return the header and [(line number, values)] of a CSV file."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = csv.reader(file, strict=True)
            header = next(rows, [])
            lines = [(rows.line_num, row) for row in rows]
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{path} is not a CSV file in UTF-8: {error}") from None
    if not lines:
        raise ValueError(f"{path} has no rows below its header")
    return header, lines


def _read_column(path, column, place, lines):
    """Return one column as an array; a text that repeats is read once."""
    texts = [row[place] for _, row in lines]
    values = {}
    for text in dict.fromkeys(texts):
        try:
            values[text] = column.read(text)
        except ValueError as error:
            line = lines[texts.index(text)][0]
            raise ValueError(f"{path} line {line}, column {column.header}: {error}") from None
    return np.array([values[text] for text in texts])


def _table(columns, data):
    for column in data.values():
        column.setflags(write=False)
    return Table(tuple(columns), MappingProxyType(data))


def chip_id(name):
    """Return the id of a chip, given its id or the name the tables use.

    >>> chip_id("b200_sxm")
    'b200'
    """
    return chip_named(name).id


def dtype(text):
    """Return `text` if gemm.csv may use it as a dtype; else raise ValueError listing those."""
    return one_of("dtype", text, OPERANDS)


def kv_dtype(text):
    """Return `text` if decode_gqa.csv may use it as the dtype of a cache; else raise ValueError listing those."""
    return one_of("kv_cache_dtype", text, KV_FORMATS)


def count(text):
    """Return a whole number above 0 and at most 2**53, up to which a float holds each; else raise ValueError.

    >>> count("8192")
    8192
    """
    digits = text.lstrip("0") if text.isascii() and text.isdigit() else ""
    if not digits:
        raise ValueError(f"must be a whole number above 0, got {text!r}")
    if len(digits) > 16 or int(digits) > 2**53:
        raise ValueError(f"must be a whole number up to 2**53, got {text!r}")
    return int(digits)


def microseconds(text):
    """Return seconds, given the text of a finite number of microseconds above 0; else raise ValueError."""
    try:
        value = float(text) if "_" not in text else math.nan
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value > 0):
        raise ValueError(f"must be a finite number above 0, got {text!r}")
    return value * MICRO


GEMM_COLUMNS = (
    Column("gpu", "chip", chip_id),
    Column("dtype", "dtype", dtype),
    Column("m_tokens", "m", count),
    Column("n_out_features", "n", count),
    Column("k_in_features", "k", count),
    Column("latency_us", "latency", microseconds),
)


@cache
def gemm_table():
    """Return the measured GEMMs C[M,N] = A[M,K] B[K,N]: columns chip, dtype, m, n, k, latency (seconds).

    Source: aiconfigurator-core 0.12.0, (c) NVIDIA Corporation & affiliates, Apache-2.0; see data/silicon/README.md.

    >>> point = gemm_table().where(chip="gb300", dtype="bfloat16", m=32768, n=2048, k=3584)
    >>> round(float(gemm.flops(32768, 2048, 3584) / point["latency"][0] / 1e12))  # TFLOP/s, of 2500
    1929
    """
    return read_table(FOLDER / "gemm.csv", GEMM_COLUMNS)


def ideal(table):
    """Return the ideal roofline.Time of every row of a table of GEMMs, as arrays, in seconds.

    Bytes count the formats of OPERANDS. The measured rows in low precision also quantize their activations.
    """
    limits = np.empty((2, len(table)))
    for chip, kind in set(zip(table["chip"].tolist(), table["dtype"].tolist(), strict=True)):
        rows = (table["chip"] == chip) & (table["dtype"] == kind)
        a, b, c = OPERANDS[kind]
        time = gemm.time(*(table[size][rows] for size in "mnk"), chip_named(chip), a=a, b=b, c=c)
        limits[:, rows] = time.math, time.memory
    return Time(*limits)


def speedups(chip, fast, slow="bfloat16"):
    """Return the rows of dtype `fast` whose shape was measured as `slow` too, and how many times faster they are.

    Returns (Table, array of latency of `slow` over latency of `fast`).

    >>> table, ratio = speedups("gb300", "nvfp4")
    >>> round(float(ratio[(table["m"] == 256) & (table["n"] == 4096) & (table["k"] == 4096)][0]), 2)  # nominally 6
    1.03
    """
    quick, other = (gemm_table().where(chip=chip, dtype=d) for d in (fast, slow))
    known = dict(zip(zip(*(other[size].tolist() for size in "mnk"), strict=True), other["latency"], strict=True))
    shapes = list(zip(*(quick[size].tolist() for size in "mnk"), strict=True))
    both = np.array([shape in known for shape in shapes], bool)
    table = _table(quick.columns, {name: column[both] for name, column in quick.data.items()})
    return table, np.array([known[shape] for shape in shapes if shape in known]) / table["latency"]


def over_square(table):
    """Return (time over that of the square of as many weights, N / K) of the rows of a table of GEMMs that have one.

    A row is compared with the N = K = sqrt(N K) of the same chip, dtype and tokens, where that was measured.

    >>> ratio, shape = over_square(gemm_table().where(chip="gb300", dtype="nvfp4", m=lambda m: m >= 512))
    >>> round(float(np.median(ratio[shape == 1 / 16])), 2)  # K 16 times N: a long reduction
    1.73
    """
    keys = list(zip(*(table[name].tolist() for name in ("chip", "dtype", "m", "n", "k")), strict=True))
    times = dict(zip(keys, table["latency"].tolist(), strict=True))
    found = []
    for *kind, n, k in keys:
        side = math.isqrt(n * k)
        square = (*kind, side, side)
        if side * side == n * k and n != k and square in times:
            found.append((times[*kind, n, k] / times[square], n / k))
    return tuple(np.array(found).reshape(-1, 2).T)


DECODE_COLUMNS = (
    Column("gpu", "chip", chip_id),
    Column("kv_cache_dtype", "dtype", kv_dtype),
    Column("batch_requests", "batch", count),
    Column("q_heads", "heads", count),
    Column("kv_heads", "kv_heads", count),
    Column("head_dim_elems", "head_dim", count),
    Column("kv_len_tokens", "context", count),
    Column("latency_us", "latency", microseconds),
)


@cache
def decode_table():
    """Return measured decode steps of the attention of one layer: every request adds a token and reads its cache.

    Columns chip, dtype (of the cache), batch, heads, kv_heads, head_dim, context (tokens), latency (seconds).
    Source: as `gemm_table`.

    >>> len(decode_table().where(chip="gb300", dtype="bfloat16", batch=16))
    67
    """
    return read_table(FOLDER / "decode_gqa.csv", DECODE_COLUMNS)


def ideal_decode(table):
    """Return the ideal roofline.Time of every row of a table of decode steps, as arrays, in seconds."""
    limits = np.empty((2, len(table)))
    kinds = ("chip", "dtype", "heads", "kv_heads", "head_dim")
    for chip, kind, heads, kv_heads, head_dim in set(zip(*(table[k].tolist() for k in kinds), strict=True)):
        wanted = dict(zip(kinds, (chip, kind, heads, kv_heads, head_dim), strict=True))
        rows = np.logical_and.reduce([table[name] == value for name, value in wanted.items()])
        one = Layer(Full(heads, kv_heads, head_dim), None, norms=0)
        *_, attention = layer.kernels(
            one, heads * head_dim, 1, table["context"][rows] - 1, batch=table["batch"][rows], kv=KV_FORMATS[kind]
        )
        time = roofline.time(attention.work, chip, attention.unit)
        limits[:, rows] = time.math, time.memory
    return Time(*limits)


def pairs_ordered(modelled, measured):
    """Return the share of pairs of rows that `modelled` puts in the order of `measured`; ties count as wrong.

    modelled, measured : arrays of equal length, at least two rows.

    >>> pairs_ordered(np.array([1.0, 2.0, 3.0]), np.array([1.0, 3.0, 2.0]))
    0.6666666666666666
    """
    first, second = np.triu_indices(len(measured), 1)
    right = np.sign(modelled[first] - modelled[second]) == np.sign(measured[first] - measured[second])
    return float(right.mean())
