"""Bad input is refused with the argument's name and the value that was wrong."""

from fractions import Fraction

import numpy as np
import pytest

from cotune.arguments import one_of, positive

BAD_NUMBERS = [
    (0, "0"),
    (-1, "-1"),
    (-0.5, "-0.5"),
    (float("nan"), "nan"),
    (float("inf"), "inf"),
    ([256, 0], "0"),
    ([[1, 2], [3, -4]], "-4"),
    (np.array([1.0, np.nan]), "nan"),
    ([2**70, -1], "-1"),
]
NOT_NUMBERS = [
    *("x", "256", "", None, True, np.True_, 1j, b"3", {"m": 1}, 10**400),
    *(["1", "2"], [1, "x"], [1, True], [1.5, False], [[1, 2], [3, True]], (1, "3"), [1, None], [1, np.True_]),
    *([[1], [1, 2]], [1, np.array([True])], np.array([True]), np.array(["3"])),
    *(np.array(["3"], dtype=object), np.array([3, True], dtype=object), np.array([3], dtype=object)),
]


@pytest.mark.parametrize("value, shown", BAD_NUMBERS)
def test_a_number_that_is_not_above_zero_is_named(value, shown):
    with pytest.raises(ValueError) as error:
        positive("m", value)
    assert str(error.value) == f"m must be a finite number above 0, got {shown}"


@pytest.mark.parametrize("value", NOT_NUMBERS, ids=lambda value: repr(value)[:20])
def test_what_is_not_a_number_is_named(value):
    with pytest.raises(ValueError) as error:
        positive("hidden", value)
    assert str(error.value) == f"hidden must be a number or an array of numbers, got {value!r}"


@pytest.mark.parametrize("value", [3, 3.0, np.int64(3), np.float32(3), np.array(3), Fraction(3)])
def test_a_scalar_comes_back_as_a_float(value):
    assert positive("m", value) == 3.0 and type(positive("m", value)) is float


def test_an_array_keeps_its_shape_and_the_caller_its_data():
    given = np.array([[1, 2, 3], [4, 5, 6]])
    got = positive("m", given)
    assert got.shape == (2, 3) and got.dtype == float
    got[0, 0] = -1
    assert given[0, 0] == 1
    assert positive("m", []).shape == (0,)


@pytest.mark.parametrize("value", [[1, 2.5], (1, 2.5), [Fraction(1), np.float32(2.5)], [np.array(1), np.array(2.5)]])
def test_a_list_of_numbers_of_any_kind_is_an_array(value):
    assert positive("m", value).tolist() == [1.0, 2.5]
    assert positive("m", range(1, 3)).tolist() == [1.0, 2.0]
    assert positive("m", [2**70]).tolist() == [2.0**70]


@pytest.mark.parametrize("value", ["fp7", "BF16", "", None, 4, ["bf16"], True])
def test_one_of_lists_what_is_known(value):
    with pytest.raises(ValueError) as error:
        one_of("format", value, {"bf16": 1, "fp8": 2})
    assert str(error.value) == f"unknown format {value!r}; known: bf16, fp8"


def test_one_of_returns_what_it_knows():
    assert one_of("format", "fp8", {"bf16": 1, "fp8": 2}) == "fp8"
