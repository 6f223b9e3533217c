"""Bits per element with block scales, and which unit multiplies what."""

import dataclasses

import pytest

from cotune.formats import FORMATS, Format, format_named, multiply_unit

BITS = {
    "bf16": 16,
    "fp8": 8,
    "fp8_e5m2": 8,
    "fp8_1x128": 8.25,
    "fp8_128x128": 8 + 32 / 16384,
    "mxfp8": 8.25,
    "mxfp8_e5m2": 8.25,
    "mxfp4": 4.25,
    "nvfp4": 4.5,
}
UNITS = {
    "bf16": "bf16",
    "fp8": "fp8",
    "fp8_e5m2": "fp8",
    "fp8_1x128": "fp8",
    "fp8_128x128": "fp8",
    "mxfp8": "fp8",
    "mxfp8_e5m2": "fp8",
    "mxfp4": "fp4",
    "nvfp4": "fp4",
}


def test_bits_and_bytes_per_element():
    assert {name: f.bits_per_element for name, f in FORMATS.items()} == BITS
    assert {name: f.bytes_per_element for name, f in FORMATS.items()} == {name: b / 8 for name, b in BITS.items()}


def test_the_article_counts_an_nvfp4_element_as_0_5625_bytes():
    assert format_named("nvfp4").bytes_per_element == 0.5625


def test_each_format_has_its_name_and_a_unit():
    assert {name: f.unit for name, f in FORMATS.items()} == UNITS
    assert all(f.name == name and f.title for name, f in FORMATS.items())


def test_a_format_passes_through_and_cannot_change():
    mine = Format("int4", "INT4, FP16 scale per 128", 4, 16, 128, "bf16")
    assert format_named(mine) is mine and mine.bits_per_element == 4.125
    with pytest.raises(dataclasses.FrozenInstanceError):
        mine.block = 64


@pytest.mark.parametrize("name", ["fp4", "FP8", "", None, 8])
def test_an_unknown_format_lists_the_known_ones(name):
    with pytest.raises(ValueError) as error:
        format_named(name)
    assert str(error.value) == f"unknown format {name!r}; known: {', '.join(BITS)}"


@pytest.mark.parametrize("a", FORMATS)
@pytest.mark.parametrize("b", FORMATS)
def test_the_wider_operand_decides_the_unit(a, b):
    from_wide_to_narrow = ("bf16", "fp8", "fp4")
    widest = min(from_wide_to_narrow.index(UNITS[f]) for f in (a, b))
    assert multiply_unit(a, b) == multiply_unit(b, a) == from_wide_to_narrow[widest]


def test_multiply_unit_refuses_what_it_does_not_know():
    with pytest.raises(ValueError, match="unknown format 'int4'"):
        multiply_unit("bf16", "int4")
