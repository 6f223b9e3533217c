"""Fits against known truths and against the shipped ones, left-out groups, and `cotune validate`."""

import json
import shutil

import numpy as np
import pytest

from cotune import calibration, gemm, silicon
from cotune.calibration import fit, least, score, validate, validate_gemm, write_parameters
from cotune.cli import main
from cotune.parameters import GemmParameters, carry, fitted, read_parameters

KEYS = ["op", "chip", "format", "mode", "n", "mape", "median_ape", "p90_ape", "bias"]
HEADER = "gpu,dtype,m_tokens,n_out_features,k_in_features,latency_us\n"
TABLE = silicon.gemm_table()


def kind(chip, dtype, **wanted):
    return TABLE.where(chip=chip, dtype=dtype, **wanted)


def made_of(parameters, dtype, slower=1.0):
    """A table of the shapes measured on a chip, with the times of given parameters."""
    shapes = kind(parameters.chip, dtype)
    time = gemm.calibrated(
        shapes["m"], shapes["n"], shapes["k"], parameters.chip, parameters.kernel, parameters=parameters
    )
    return silicon.Table(shapes.columns, {**shapes.data, "latency": time.total * slower})


# --- fitting ---


def test_least_finds_a_known_curve():
    x = np.linspace(0, 3, 50)
    truth = np.array([0.4, -1.2])
    got = least(
        lambda p: np.exp(p[0] * x) + p[1] * x - np.exp(truth[0] * x) - truth[1] * x, np.array([0.3, -0.9]), pull=0
    )
    assert got == pytest.approx(truth, abs=1e-4)


def test_a_few_rows_in_disorder_do_not_bend_a_fit():
    x = np.linspace(0, 1, 100)
    wrong = np.where(np.arange(100) % 10 == 0, 5.0, 0.0)
    assert least(lambda p: p[0] + p[1] * x - 2 - 3 * x - wrong, np.zeros(2), pull=0) == pytest.approx([2, 3], abs=0.05)


def test_what_the_data_leave_open_stays_at_its_start():
    assert least(lambda p: np.array([p[0] - 1]), np.array([0.0, 0.0]), pull=1e-3)[1] == 0


@pytest.mark.parametrize(
    "dtype, truth",
    [
        ("bfloat16", GemmParameters("gb300", "bf16", 3e-6, 0.6, 0.7, 0.015, 0.008, split=2e-6)),
        ("fp8", GemmParameters("h100", "fp8", 4e-6, 0.8, 0.6, 0.03, 0.005, quantize=2.0)),
    ],
)
def test_a_fit_finds_the_parameters_that_made_the_times(dtype, truth):
    got = fit(made_of(truth, dtype))
    assert got.values == pytest.approx(truth.values, rel=0.05)
    table = made_of(truth, dtype)
    assert score(calibration.calibrated(table, got), table["latency"])["mape"] < 0.5


@pytest.mark.parametrize("chip, dtype", [("gb300", "fp8"), ("a100", "bfloat16"), ("h200", "fp8_block")])
def test_the_shipped_parameters_are_the_fit_of_the_shipped_data(chip, dtype):
    shipped = fitted()[chip, silicon.KERNEL_OF[dtype]]
    assert fit(kind(chip, dtype)).values == pytest.approx(shipped.values, rel=2e-3)


@pytest.mark.parametrize("key", fitted(), ids=str)
def test_the_stored_error_is_that_of_the_stored_parameters(key):
    chip, kernel = key
    dtype = next(d for d, name in silicon.KERNEL_OF.items() if name == kernel)
    table = kind(chip, dtype)
    got, stored = score(calibration.calibrated(table), table["latency"]), fitted()[key].error
    assert {name: getattr(stored, name) for name in got} == pytest.approx(got, abs=0.02)


def test_a_table_of_several_kinds_is_not_fitted_at_once():
    with pytest.raises(ValueError, match="one chip and dtype can be fitted at a time, the table has 19"):
        fit(TABLE)
    with pytest.raises(ValueError, match="the table has 0"):
        fit(kind("a100", "nvfp4"))


# --- left-out groups ---


def few(chip="h100", dtype="fp8"):
    """The rows of three (N, K) pairs: enough to fit, quick to cross-validate."""
    return kind(chip, dtype, n=[1024, 8192], k=[4096, 768, 8192])


def test_every_pair_is_left_out_once_and_its_rows_are_not_fitted():
    table = few()
    seconds, pairs = calibration.left_out_pairs(table, fit(table))
    assert len(set(pairs.tolist())) == len(set(zip(table["n"].tolist(), table["k"].tolist(), strict=True))) == 3
    for group in set(pairs.tolist()):
        out = pairs == group
        assert len({(n, k) for n, k in zip(table["n"][out], table["k"][out], strict=True)}) == 1
        spoiled = silicon.Table(table.columns, {**table.data, "latency": np.where(out, 1.0, table["latency"])})
        again, _ = calibration.left_out_pairs(spoiled, fit(table))
        assert again[out] == pytest.approx(seconds[out], rel=1e-3)  # the pair's own times do not reach its fit


def test_one_pair_cannot_be_left_out():
    table = kind("h100", "fp8", n=8192, k=8192)
    with pytest.raises(ValueError, match="rows of two pairs or more"):
        calibration.left_out_pairs(table, fit(table))


def test_beyond_fits_small_layers_and_scores_large_ones():
    rest, seconds = calibration.beyond(kind("h100", "fp8"))
    assert len(rest) == 144 and (np.maximum(rest["n"], rest["k"]) > 8192).all()
    assert score(seconds, rest["latency"])["mape"] < 15
    assert len(calibration.beyond(few())[0]) == 0


def test_cross_validation_has_a_row_per_mode():
    table = TABLE.where(chip=["h100", "h200"], dtype="fp8", n=[128, 1024, 8192], k=[2560, 4096, 16384])
    rows = validate_gemm(table, cv=True)
    modes = [(r["chip"], r["mode"]) for r in rows]
    names = ("ideal", "calibrated", "cv pair", "cv beyond", "cv chip")
    assert sorted(modes) == sorted((chip, mode) for chip in ("h100", "h200") for mode in names)
    lent = carry("h100", [fit(table.where(chip="h200"))])  # nothing of the H100's own times
    part = table.where(chip="h100")
    error = score(calibration.calibrated(part, lent), part["latency"])["mape"]
    row = next(r for r in rows if (r["chip"], r["mode"]) == ("h100", "cv chip"))
    assert row["mape"] == pytest.approx(error, abs=1e-3)
    folds = next(r for r in rows if r["mode"] == "cv pair")
    assert folds["folds"] == 4 and folds["fold_mean"] <= folds["fold_worst"]


def test_the_written_file_is_read_again():
    table = TABLE.where(chip=["h100", "h200"], dtype="fp8", n=[1024, 8192], k=[768, 4096, 8192])
    other = {d: k for d, k in silicon.KERNEL_OF.items() if d == "fp8"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(silicon, "KERNEL_OF", other)
        text = write_parameters(table)
    fits, carried = read_parameters(text)
    assert set(fits) == {("h100", "fp8"), ("h200", "fp8")} and carried["fp8"].chips == 2
    assert fits["h100", "fp8"].values == pytest.approx(fit(table.where(chip="h100")).values, rel=1e-3)


# --- validate ---


def printed(capsys, *arguments):
    assert main(["validate", *arguments]) == 0
    return capsys.readouterr().out


def folder(tmp_path, text, name="gemm.csv"):
    (tmp_path / name).write_text(text, encoding="utf-8")
    return str(tmp_path)


def test_json_has_exactly_these_keys(capsys):
    rows = json.loads(printed(capsys, "--op", "gemm", "--json"))
    assert [list(row) for row in rows] == [KEYS] * 38
    assert {row["mode"] for row in rows} == {"ideal", "calibrated"} and {row["op"] for row in rows} == {"gemm"}
    row = next(r for r in rows if (r["chip"], r["format"], r["mode"]) == ("gb300", "bfloat16", "calibrated"))
    assert row["n"] == 906 and row["mape"] == pytest.approx(fitted()["gb300", "bf16"].error.mape, abs=0.01)


def test_calibrated_is_far_nearer_than_ideal():
    rows = {(r["chip"], r["format"], r["mode"]): r["mape"] for r in validate(op="gemm")}
    for (chip, dtype, mode), error in rows.items():
        if mode == "calibrated":
            assert error < rows[chip, dtype, "ideal"] / 4


def test_without_op_every_table_is_scored(capsys):
    ops = [row["op"] for row in json.loads(printed(capsys, "--json"))]
    assert set(ops) == {"gemm", "decode_gqa"} and ops.count("decode_gqa") == 11


def test_the_table_shows_what_json_says(capsys):
    line = next(x for x in printed(capsys, "--op", "gemm").splitlines() if "gb300  nvfp4      calibrated" in x)
    row = next(
        r for r in validate(op="gemm") if (r["chip"], r["format"], r["mode"]) == ("gb300", "nvfp4", "calibrated")
    )
    shown = [f"{row['n']}", *(f"{row[key]:.1f}" for key in KEYS[5:8]), f"{row['bias']:+.1f}"]
    assert line.split()[4:] == shown


def test_a_folder_of_your_own(capsys, tmp_path):
    rows = HEADER + "h100_sxm,fp8,64,1024,4096,10.0\nh100_sxm,fp8,128,1024,4096,20.0\nb300,bfloat16,8,4096,4096,9.9\n"
    got = json.loads(printed(capsys, "--data", folder(tmp_path, rows, "mine.csv"), "--json"))
    assert [(r["chip"], r["format"], r["mode"], r["n"]) for r in got] == [
        ("b300", "bfloat16", "ideal", 1),
        ("b300", "bfloat16", "carried", 1),
        ("h100", "fp8", "ideal", 2),
        ("h100", "fp8", "calibrated", 2),
    ]
    time = gemm.calibrated([64, 128], 1024, 4096, "h100", "fp8").total
    assert got[3]["mape"] == pytest.approx(np.abs(100 * (time / [10e-6, 20e-6] - 1)).mean(), abs=1e-3)


GOOD = HEADER + "gb300,nvfp4,8,128,256,3.5\n"
REFUSED = [
    (GOOD.replace(",latency_us", "").replace(",3.5", ""), "gemm.csv line 1: column latency_us is missing"),
    (GOOD + "gb300,nvfp4,eight,128,256,3.5\n", "gemm.csv line 3, column m_tokens: must be a whole number"),
    (GOOD + "gb300,nvfp4,8,128,256,0\n", "gemm.csv line 3, column latency_us: must be a finite number above 0"),
    (GOOD + "gb300,nvfp4,8,128,256,-1\n", "gemm.csv line 3, column latency_us: must be a finite number above 0"),
    (GOOD + "gb301,nvfp4,8,128,256,3.5\n", "gemm.csv line 3, column gpu: unknown chip 'gb301'"),
    (GOOD.replace("gb300", "h100"), "gemm.csv: h100 has no fp4 arithmetic"),
    ("a,b\n1,2\n", "gemm.csv line 1: column gpu is missing"),
]


@pytest.mark.parametrize("text, message", REFUSED)
def test_a_bad_file_is_one_line_on_stderr_and_exit_2(capsys, tmp_path, text, message):
    assert main(["validate", "--data", folder(tmp_path, text), "--op", "gemm"]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("cotune: error: ") and message in err and err.count("\n") == 1


def test_a_file_of_no_known_table_is_refused(capsys, tmp_path):
    assert main(["validate", "--data", folder(tmp_path, "a,b\n1,2\n", "mine.csv")]) == 2
    assert "mine.csv line 1: these columns are of no known table; found: a, b" in capsys.readouterr().err


def test_a_missing_column_is_seen_under_any_name(capsys, tmp_path):
    text = GOOD.replace("k_in_features", "depth")
    assert main(["validate", "--data", folder(tmp_path, text, "mine.csv")]) == 2
    assert "mine.csv line 1: column k_in_features is missing" in capsys.readouterr().err


def test_a_table_that_is_not_scored_is_told(capsys, tmp_path):
    shutil.copy(silicon.FOLDER / "gemm.csv", tmp_path)
    folder(tmp_path, "gpu,latency_us\n", "serving.csv")
    assert main(["validate", "--data", str(tmp_path)]) == 0
    assert "serving.csv: serving is not scored yet" in capsys.readouterr().err


@pytest.mark.parametrize("data", ["no-such-folder", "."])
def test_a_folder_without_tables_is_refused(capsys, tmp_path, monkeypatch, data):
    monkeypatch.chdir(tmp_path)
    assert main(["validate", "--data", data]) == 2
    assert capsys.readouterr().err.startswith(f"cotune: error: {data} ")


def test_an_unknown_op_lists_the_known_ones(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["validate", "--op", "attention"])
    assert caught.value.code == 2 and "'gemm', 'decode_gqa'" in capsys.readouterr().err
