"""Fit the parameters of `gemm.calibrated` to measurements, and say how far ideal and calibrated times are from them.

`python -m cotune.calibration` prints the fits of data/silicon as data/parameters.toml holds them (some minutes).
"""

import warnings
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from cotune import gemm, silicon
from cotune.parameters import KERNELS, CarriedError, FitError, GemmParameters, carry, gemm_parameters
from cotune.units import MICRO

# Where a fit starts, and what it is weakly pulled to, so that what the data leave open stays near.
START = {
    **{"fixed": 2.5 * MICRO, "peak": 0.75, "bandwidth": 0.75, "load": 0.02, "store": 0.01},
    **{"split": 1.5 * MICRO, "quantize": 1.2},
}
PULL = 1.0  # a parameter e times its START costs as much as half a row that is off by a factor of e
SMALL = 0.05  # errors below count squared, above linearly: a row in disorder does not bend the fit
STEPS = 40
LARGE = 8192  # fitted on N and K up to here, tested beyond


# --- fitting ---


def least(residuals, begin, *, pull=PULL):
    """Return the x near `begin` that makes sum(sqrt(r^2 + SMALL^2)) + pull |x|^2 / 2 least, with r = residuals(x).

    Gauss-Newton on rows weighted by 1 / sqrt(r^2 + SMALL^2), damped until a step improves (Levenberg, Marquardt).

    >>> least(lambda x: x - np.array([1.0, 1.0, 1.0, 9.0]), np.array([0.5]), pull=0).round(1)  # one row in disorder
    array([1.])
    """

    def cost(x, r):
        return np.hypot(r, SMALL).sum() + pull * (x @ x) / 2

    x, r, damping = begin, residuals(begin), 1e-2
    for _ in range(STEPS):
        slopes = np.stack([(residuals(x + 1e-3 * unit) - r) / 1e-3 for unit in np.eye(x.size)], axis=-1)
        weighted = slopes.T / np.hypot(r, SMALL)
        curve, slope, before = weighted @ slopes + pull * np.eye(x.size), weighted @ r + pull * x, cost(x, r)
        while damping < 1e6:
            new = x - np.linalg.solve(curve + damping * np.diag(np.diag(curve)), slope).clip(-0.7, 0.7)
            new_r = residuals(new)
            if cost(new, new_r) < before:
                break
            damping *= 4
        else:
            return x
        x, r, damping = new, new_r, max(damping / 5, 1e-6)
        if before - cost(x, r) < 1e-6 * before:
            return x
    return x


def fit(table, begin=None):
    """Return the GemmParameters that fit a table of GEMMs of one chip and dtype, on the logarithm of the time.

    begin : GemmParameters to start the search from. Raises ValueError for a table without rows or of several kinds.
    """
    kinds = _kinds(table)
    if len(kinds) != 1:
        raise ValueError(f"one chip and dtype can be fitted at a time, the table has {len(kinds)}")
    chip, kernel = kinds[0][0], silicon.KERNEL_OF[kinds[0][1]]
    names = KERNELS[kernel].fitted
    start, measured = np.array([START[name] for name in names]), np.log(table["latency"])

    def parameters(x):
        return GemmParameters(chip, kernel, **dict(zip(names, (start * np.exp(x)).tolist(), strict=True)))

    def residuals(x):
        return np.log(calibrated(table, parameters(x))) - measured

    x = np.zeros(len(names)) if begin is None else np.log(begin.values / start)
    return parameters(least(residuals, x))


def _kinds(table):
    """The (chip, dtype) pairs of a table, sorted."""
    return sorted(set(zip(table["chip"].tolist(), table["dtype"].tolist(), strict=True)))


def calibrated(table, parameters=None):
    """Return the calibrated seconds of every row of a table of GEMMs, with `parameters` or else the shipped ones."""
    seconds = np.empty(len(table))
    for chip, dtype in _kinds(table):
        rows = (table["chip"] == chip) & (table["dtype"] == dtype)
        shape = (table[size][rows] for size in "mnk")
        seconds[rows] = gemm.calibrated(*shape, chip, silicon.KERNEL_OF[dtype], parameters=parameters).total
    return seconds


# --- left-out groups ---


def left_out_pairs(table, whole):
    """Return the predicted seconds of every row of one kind, each by a fit without its (N, K) pair, and the groups.

    whole : GemmParameters of the fit with all rows, where each of the others starts.
    """
    pairs = np.unique(np.stack([table["n"], table["k"]]), axis=1, return_inverse=True)[1].ravel()
    if pairs.max(initial=0) == 0:
        raise ValueError("to leave an (N, K) pair out, a chip and dtype needs rows of two pairs or more")
    seconds = np.empty(len(table))
    for group in range(pairs.max() + 1):
        out = pairs == group
        seconds[out] = calibrated(_rows(table, out), fit(_rows(table, ~out), whole))
    return seconds, pairs


def beyond(table):
    """Return the rows with N or K above LARGE and their seconds, predicted by a fit of all other rows."""
    large = (table["n"] > LARGE) | (table["k"] > LARGE)
    if large.all() or not large.any():
        return _rows(table, large & False), np.empty(0)
    rest = _rows(table, large)
    return rest, calibrated(rest, fit(_rows(table, ~large)))


def _rows(table, mask):
    return silicon.Table(table.columns, {name: column[mask] for name, column in table.data.items()})


# --- scores ---


def score(seconds, measured):
    """Return {n, mape, median_ape, p90_ape, bias} of predicted against measured seconds, in percent of the latter.

    >>> score(np.array([1.1, 0.8]), np.array([1.0, 1.0]))["mape"].round(6)
    np.float64(15.0)
    """
    error = 100 * (seconds / measured - 1)
    size = np.abs(error)
    return {
        "n": int(size.size),
        "mape": size.mean(),
        "median_ape": np.median(size),
        "p90_ape": np.quantile(size, 0.9),
        "bias": error.mean(),
    }


def _row(op, kind, mode, seconds, measured, groups=None):
    """One row of a validation; with `groups`, the mean and worst error over them too."""
    row = {"op": op, "chip": kind[0], "format": kind[1], "mode": mode} | score(seconds, measured)
    if groups is not None:
        size = 100 * np.abs(seconds / measured - 1)
        folds = [size[groups == group].mean() for group in np.unique(groups)]
        row |= {"folds": len(folds), "fold_mean": np.mean(folds), "fold_worst": np.max(folds)}
    return {key: round(float(value), 3) if isinstance(value, float) else value for key, value in row.items()}


def validate_gemm(table, *, cv=False):
    """Return one row per chip, dtype and mode: ideal and calibrated; with `cv` refitted without each group too.

    Modes: "ideal", "calibrated" (the shipped parameters; "carried" where the chip has none of its own),
    "cv pair" (each (N, K) pair left out in turn), "cv beyond" (N or K above 8192, fitted below), "cv chip" (the
    chip's parameters carried over from the others in the table). Rows are dicts; errors in percent.
    """
    found = []
    for kind in _kinds(table):
        part = table.where(chip=kind[0], dtype=kind[1])
        found.append(_row("gemm", kind, "ideal", silicon.ideal(part).total, part["latency"]))
        parameters = gemm_parameters(kind[0], silicon.KERNEL_OF[kind[1]])
        mode = "carried" if parameters.donors else "calibrated"
        found.append(_row("gemm", kind, mode, calibrated(part, parameters), part["latency"]))
    return found + cross_validate(table) if cv else found


def cross_validate(table, fits=None):
    """Return the rows of the modes that start with "cv" in `validate_gemm`.

    fits : {(chip, dtype): GemmParameters} of all rows, where they are at hand.
    """
    fits, found = fits or fit_all(table), []
    for kind, whole in fits.items():
        part = table.where(chip=kind[0], dtype=kind[1])
        seconds, pairs = left_out_pairs(part, whole)
        found.append(_row("gemm", kind, "cv pair", seconds, part["latency"], pairs))
        rest, seconds = beyond(part)
        found += [_row("gemm", kind, "cv beyond", seconds, rest["latency"])] if len(rest) else []
    return [*found, *_left_out_chips(table, fits)]


def fit_all(table):
    """Return {(chip, dtype): GemmParameters} of every kind in a table."""
    return {kind: fit(table.where(chip=kind[0], dtype=kind[1])) for kind in _kinds(table)}


def _left_out_chips(table, fits):
    """Rows of each chip with parameters carried over from the fits of the other chips."""
    for chip, dtype in fits:
        others = [p for (other, kind), p in fits.items() if kind == dtype and other != chip]
        if others:
            part = table.where(chip=chip, dtype=dtype)
            seconds = calibrated(part, carry(chip, others))
            yield _row("gemm", (chip, dtype), "cv chip", seconds, part["latency"])


def validate_decode(table, *, cv=False):
    """Return one row per chip and dtype of a table of decode steps; only the ideal time, nothing is fitted."""
    seconds = silicon.ideal_decode(table).total
    kinds = [(kind, (table["chip"] == kind[0]) & (table["dtype"] == kind[1])) for kind in _kinds(table)]
    return [_row("decode_gqa", kind, "ideal", seconds[rows], table["latency"][rows]) for kind, rows in kinds]


# --- a folder of measurements ---

OPS = {"gemm": (silicon.GEMM_COLUMNS, validate_gemm), "decode_gqa": (silicon.DECODE_COLUMNS, validate_decode)}
UNSCORED = ("decode_mla", "moe_layer", "collective_nccl", "serving")  # tables of the same source, not modelled here


def validate(folder=silicon.FOLDER, op=None, *, cv=False):
    """Return the rows of every table in a folder of CSV files: see `validate_gemm` and `validate_decode`.

    A file is of the op it is named after (gemm.csv), or else of the one with most of its columns. With `op`, a key of
    OPS, other files are left alone; files that no op fits are refused, those of UNSCORED told as a warning.
    Errors: ValueError naming file, line and column of the first cell that cannot be used, and for a folder without a
    table.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise ValueError(f"{folder} is not a folder of CSV files")
    found = []
    for path in sorted(folder.glob("*.csv")):
        kind = _op_of(path)
        if kind in UNSCORED and op is None:
            warnings.warn(f"{path}: {kind} is not scored yet", stacklevel=2)
        if kind in OPS and op in (None, kind):
            found.append((path, kind))
    if not found:
        raise ValueError(f"{folder} has no table of {op or ' or '.join(OPS)}")
    return [row for path, kind in found for row in _validate_file(path, kind, cv)]


def _op_of(path):
    """The op of a file: by its name, or by its header."""
    if path.stem in OPS or path.stem in UNSCORED:
        return path.stem
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        header = set(file.readline().strip().split(","))
    shared = {op: len(header & {c.header for c in columns}) / len(columns) for op, (columns, _) in OPS.items()}
    likely = max(shared, key=shared.get)
    if shared[likely] <= 0.5:
        raise ValueError(f"{path} line 1: these columns are of no known table; found: {', '.join(sorted(header))}")
    return likely


def _validate_file(path, op, cv):
    columns, judge = OPS[op]
    table = silicon.read_table(path, columns)
    try:
        return judge(table, cv=cv)
    except ValueError as error:  # arithmetic that a chip of the file lacks
        raise ValueError(f"{path}: {error}") from None


# --- the file ---


def write_parameters(table):
    """Return the text of data/parameters.toml: a fit per chip and dtype with its errors, and those of carried ones."""
    fits = {kind: _rounded(p) for kind, p in fit_all(table).items()}
    rows = cross_validate(table, fits)
    row = {(r["chip"], r["format"], r["mode"]): r for r in rows}
    blocks = [HEADER]
    for (chip, dtype), p in fits.items():
        part, cv = table.where(chip=chip, dtype=dtype), row[chip, dtype, "cv pair"]
        error = score(calibrated(part, p), part["latency"])
        error |= {"cv_mean": cv["fold_mean"], "cv_worst": cv["fold_worst"]}
        blocks.append(_block(p, FitError(**{k: v if k == "n" else round(float(v), 2) for k, v in error.items()})))
    for dtype, kernel in silicon.KERNEL_OF.items():
        found = {r["chip"]: r["mape"] for r in rows if r["format"] == dtype and r["mode"] == "cv chip"}
        worst = max(found, key=found.get)
        mean = round(float(np.mean(list(found.values()))), 2)
        error = CarriedError(len(found), mean, round(found[worst], 2), worst)
        blocks.append(f"[carried.{kernel}]\n" + "".join(f"{k} = {_toml(v)}\n" for k, v in asdict(error).items()))
    return "\n".join(blocks)


HEADER = """\
# Fitted parameters of gemm.calibrated, per chip and kernel: made by `python -m cotune.calibration`, not by hand.
# What each one means: cotune.parameters.GemmParameters. Fitted on data/silicon/gemm.csv, on the logarithm of the time.
# error: percent of the measured time, over the n rows of the fit; cv_mean and cv_worst are the error of the (N, K)
# pairs that were left out of it, one after the other. carried: error of whole chips that were left out.
"""


def _rounded(p):
    """The same parameters to four digits, as the file holds them."""
    values = {name: float(f"{getattr(p, name):.4g}") for name in KERNELS[p.kernel].fitted}
    return replace(p, **values)


def _block(p, error):
    """The lines of one fit."""
    lines = [f"[gemm.{p.chip}.{p.kernel}]"]
    for name, value in zip(KERNELS[p.kernel].fitted, p.values, strict=True):
        key, value = (f"{name}_us", value / MICRO) if name in ("fixed", "split") else (name, value)
        lines.append(f"{key} = {value:.4g}")
    shown = ", ".join(f"{key} = {_toml(value)}" for key, value in asdict(error).items())
    return "\n".join([*lines, f"error = {{ {shown} }}", ""])


def _toml(value):
    return f'"{value}"' if isinstance(value, str) else str(value)


if __name__ == "__main__":
    print(write_parameters(silicon.gemm_table()), end="")
