"""The fitted parameters as shipped, what may stand in their file, and how they carry over to other chips."""

import math
from dataclasses import replace
from pathlib import Path

import pytest

from cotune import parameters, silicon
from cotune.calibration import START
from cotune.chip import chip_named
from cotune.parameters import KERNELS, CarriedError, FitError, carry, fitted, gemm_parameters, read_parameters

TEXT = (Path(parameters.__file__).parent / "data" / "parameters.toml").read_text(encoding="utf-8")
ALL = fitted()


def test_every_kind_of_the_measured_table_has_a_fit():
    table = silicon.gemm_table()
    kinds = set(zip(table["chip"].tolist(), table["dtype"].tolist(), strict=True))
    assert {(chip, silicon.KERNEL_OF[dtype]) for chip, dtype in kinds} == set(ALL)


def test_kernels_have_the_formats_of_the_measured_table():
    assert silicon.OPERANDS["fp8_block"] == ("fp8_1x128", "fp8_128x128", "bf16")
    assert set(silicon.KERNEL_OF.values()) == set(KERNELS)


@pytest.mark.parametrize("key", ALL, ids=str)
def test_six_parameters_none_at_an_end_of_what_is_possible(key):
    p = ALL[key]
    assert len(p.values) == 6 and (p.split is None) != (p.quantize is None)
    assert 0.3 < p.peak < 0.99 and 0.6 < p.bandwidth < 0.95  # shares of a datasheet
    for name, value in zip(KERNELS[p.kernel].fitted, p.values, strict=True):
        assert abs(math.log(value / START[name])) < 2  # no parameter ran away


@pytest.mark.parametrize("key", ALL, ids=str)
def test_a_fit_says_how_far_off_it_is(key):
    error = ALL[key].error
    assert isinstance(error, FitError) and error.n >= 342
    assert error.median_ape < error.mape < error.p90_ape
    assert error.mape <= error.cv_mean <= error.cv_worst
    assert error.cv_mean <= (8 if key[1] == "bf16" else 10 if key[0] == "gb300" else 13)


def test_an_unknown_kernel_lists_the_known_ones():
    with pytest.raises(ValueError, match="unknown kernel 'int8'; known: bf16, fp8, fp8_block, nvfp4"):
        gemm_parameters("gb300", "int8")


def test_a_chip_without_the_arithmetic_says_what_it_has():
    with pytest.raises(ValueError, match="h100 has no fp4"):
        gemm_parameters("h100", "nvfp4")


# --- carried ---


def test_a_chip_without_data_borrows_from_its_generation():
    p = gemm_parameters("b300", "nvfp4")
    assert set(p.donors) == {"b200", "gb200", "gb300"} and isinstance(p.error, CarriedError)
    known = [ALL[chip, "nvfp4"].peak for chip in p.donors]
    assert min(known) < p.peak < max(known) and p.chip == "b300"


@pytest.mark.parametrize("kernel", KERNELS)
def test_carried_errors_are_larger_than_those_of_fits(kernel):
    error = gemm_parameters("b300", kernel).error
    own = {chip: p.error.mape for (chip, name), p in ALL.items() if name == kernel}
    assert error.chips == len(own) and error.worst_chip in own and error.mean < error.worst
    assert error.mean > sum(own.values()) / len(own)


def test_who_lends():
    bf16 = [p for (_, kernel), p in ALL.items() if kernel == "bf16"]
    assert carry("h100", [p for p in bf16 if p.chip != "h100"]).donors == ("h200",)
    assert set(carry("a100", [p for p in bf16 if p.chip != "a100"]).donors) == {"h100", "h200"}
    assert carry("h100", [p for p in bf16 if p.chip == "h200"]).values == pytest.approx(ALL["h200", "bf16"].values)


@pytest.mark.parametrize("chip", ["mi300x", "tpu-v6e"])
def test_nothing_carries_over_to_another_maker(chip):
    with pytest.raises(ValueError, match=f"{chip} was not measured"):
        gemm_parameters(chip_named(chip), "bf16")


# --- what is refused ---


def block(**changes):
    """A parameters file with one fit, some of its keys changed; None takes a key out."""
    keys = {"fixed_us": 2.0, "peak": 0.7, "bandwidth": 0.8, "load": 0.02, "store": 0.01, "split_us": 1.0}
    error = "{ n = 9, mape = 1.0, median_ape = 1.0, p90_ape = 2.0, bias = 0.1, cv_mean = 1.0, cv_worst = 2.0 }"
    keys |= {"error": error} | changes
    lines = "".join(f"{key} = {value}\n" for key, value in keys.items() if value is not None)
    return f"[gemm.h100.bf16]\n{lines}[carried.bf16]\nchips = 2\nmean = 8.0\nworst = 9.0\nworst_chip = 'a100'\n"


def test_the_file_is_read_in_si():
    fits, carried = read_parameters(block())
    assert fits["h100", "bf16"].values == pytest.approx((2e-6, 0.7, 0.8, 0.02, 0.01, 1e-6))
    assert fits["h100", "bf16"].error.n == 9 and carried["bf16"].worst_chip == "a100"


@pytest.mark.parametrize(
    "text, message",
    [
        (block(peak=None), "bf16 on h100 lacks peak"),
        (block(quantize=1.0), "bf16 on h100 has the unknown key quantize"),
        (block(peak=0), "bf16 on h100: peak must be a finite number above 0, got 0"),
        (block(fixed_us="nan"), "fixed_us must be a finite number above 0, got nan"),
        (block(load="'2'"), "load must be a finite number above 0, got '2'"),
        (block(store="true"), "store must be a finite number above 0, got True"),
        (block(error="{ n = 9 }"), "error lacks bias, cv_mean"),
        (block().replace("h100", "h101"), "unknown chip 'h101'"),
        (block().replace("h100.bf16", "h100.int8"), "unknown kernel 'int8'"),
        (block().replace("chips = 2", ""), "carried bf16 lacks chips"),
        ("[gemm]\n", "the parameters file lacks carried"),
        ("gemm = [", "the parameters file is not TOML"),
    ],
)
def test_a_file_that_cannot_be_used_says_where(text, message):
    with pytest.raises(ValueError, match=message):
        read_parameters(text)


def test_parameters_of_your_own_are_checked():
    own = replace(ALL["h100", "bf16"], peak=0.5)
    assert own.peak == 0.5
    with pytest.raises(ValueError, match="bf16 on h100: load must be a finite number above 0, got -1"):
        replace(own, load=-1)
    with pytest.raises(ValueError, match="quantize must be None"):
        replace(own, quantize=1.0)
    with pytest.raises(ValueError, match="split must be a finite number above 0, got None"):
        replace(own, split=None)


def test_the_shipped_file_is_read_whole():
    fits, carried = read_parameters(TEXT)
    assert fits == ALL and set(carried) == set(KERNELS)
