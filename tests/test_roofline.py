"""Time, bound, ridge and attainable rate: published values, properties, refusals."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from cotune import roofline
from cotune.chip import chip_named
from cotune.roofline import Time, Work

settings.load_profile("ci")  # the same examples every time, and no limit on how long one takes

amounts = st.floats(min_value=1e-3, max_value=1e18)
works = st.builds(Work, amounts, amounts)
machines = st.sampled_from(
    [("gb300", "nvfp4"), ("gb300", "bf16"), ("b200", "fp8"), ("h200", "bf16"), ("mi355x", "mxfp4"), ("a100", "bf16")]
).map(lambda pair: (chip_named(pair[0]), pair[1]))


@pytest.mark.parametrize(
    "chip, unit, ridge",
    [("gb300", "fp4", 1875), ("gb300", "fp8", 625), ("gb300", "bf16", 312.5), ("h100", "bf16", 989.4 / 3.35)],
)
def test_ridge_points(chip, unit, ridge):
    assert roofline.ridge(chip_named(chip), unit) == pytest.approx(ridge, rel=1e-12)


def test_time_is_the_longer_of_math_and_memory():
    time = roofline.time(Work(flops=3e15, bytes=8e12), chip_named("gb300"), "bf16")
    assert (time.math, time.memory, time.total, time.bound) == (1.2, 1.0, 1.2, "compute")
    time = roofline.time(Work(flops=2e15, bytes=8e12), chip_named("gb300"), "bf16")
    assert (time.math, time.memory, time.total, time.bound) == (0.8, 1.0, 1.0, "memory")


def test_scalars_stay_scalars_and_arrays_arrays():
    assert type(Time(1.0, 2.0).total) is float and type(Time(1.0, 2.0).bound) is str
    time = Time(np.array([1.0, 3.0]), np.array([2.0, 2.0]))
    assert time.total.tolist() == [2.0, 3.0] and time.bound.tolist() == ["memory", "compute"]
    assert type(roofline.attainable(10, chip_named("h100"), "bf16")) is float


@given(works, works)
def test_work_adds(one, other):
    assert one + other == Work(one.flops + other.flops, one.bytes + other.bytes)


@given(works, works, machines)
def test_the_roofline_of_a_sum_is_at_most_the_sum_of_rooflines(one, other, machine):
    chip, unit = machine
    apart = roofline.time(one, chip, unit).total + roofline.time(other, chip, unit).total
    assert roofline.time(one + other, chip, unit).total <= apart * (1 + 1e-12)


def test_and_it_can_be_strictly_less():
    chip = chip_named("gb300")
    math, memory = Work(flops=2.5e15, bytes=1), Work(flops=1, bytes=8e12)
    assert roofline.time(math, chip, "bf16").total + roofline.time(memory, chip, "bf16").total == 2.0
    assert roofline.time(math + memory, chip, "bf16").total == pytest.approx(1.0)


@given(works, machines, st.floats(min_value=1, max_value=1e3))
def test_time_scales_with_the_work(work, machine, factor):
    chip, unit = machine
    more = Work(work.flops * factor, work.bytes * factor)
    expected = roofline.time(work, chip, unit).total * factor
    assert roofline.time(more, chip, unit).total == pytest.approx(expected, rel=1e-12)


@given(works, machines)
def test_bound_agrees_with_the_ridge(work, machine):
    chip, unit = machine
    ridge = roofline.ridge(chip, unit)
    assume(abs(work.intensity / ridge - 1) > 1e-9)
    assert roofline.time(work, chip, unit).bound == ("compute" if work.intensity > ridge else "memory")


@given(works, machines)
def test_attainable_is_the_work_over_its_time(work, machine):
    chip, unit = machine
    rate = work.flops / roofline.time(work, chip, unit).total
    assert roofline.attainable(work.intensity, chip, unit) == pytest.approx(rate, rel=1e-9)


@given(st.lists(amounts, min_size=2, max_size=8), machines)
def test_attainable_of_an_array_is_a_loop_that_never_falls_nor_passes_the_peak(intensities, machine):
    chip, unit = machine
    intensities = sorted(intensities)
    rates = roofline.attainable(np.array(intensities), chip, unit)
    assert rates.tolist() == [roofline.attainable(i, chip, unit) for i in intensities]
    assert (np.diff(rates) >= 0).all() and rates[-1] <= chip.peak(unit)


@pytest.mark.parametrize("bad", [0, -1, float("nan"), float("inf"), None, "x", True])
def test_refusals_name_the_argument(bad):
    chip = chip_named("h100")
    with pytest.raises(ValueError, match=f"flops must be .*{bad}"):
        roofline.time(Work(bad, 1.0), chip, "bf16")
    with pytest.raises(ValueError, match=f"bytes must be .*{bad}"):
        roofline.time(Work(1.0, bad), chip, "bf16")
    with pytest.raises(ValueError, match=f"flops must be .*{bad}"):
        _ = Work(bad, 1.0).intensity
    with pytest.raises(ValueError, match=f"bytes must be .*{bad}"):
        _ = Work(1.0, bad).intensity
    with pytest.raises(ValueError, match=f"intensity must be .*{bad}"):
        roofline.attainable(bad, chip, "bf16")


@pytest.mark.parametrize("bad", [3, None, (1.0, 2.0), Time(1.0, 2.0)])
def test_what_is_not_work_is_refused(bad):
    with pytest.raises(ValueError, match="work must be a Work of flops and bytes, got ") as error:
        roofline.time(bad, "h100", "bf16")
    assert str(error.value).endswith(repr(bad))


@pytest.mark.parametrize(
    "ask", [roofline.ridge, lambda *a: roofline.attainable(1, *a), lambda *a: roofline.time(Work(1, 1), *a)]
)
def test_a_format_that_the_chip_lacks_says_what_it_has(ask):
    with pytest.raises(ValueError, match="h100 has no fp4 .*has bf16 and fp8"):
        ask(chip_named("h100"), "nvfp4")
