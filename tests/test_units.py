"""Constants: decimal and binary prefixes are not the same, bits are not bytes."""

from cotune import units


def test_decimal_prefixes():
    names = ("KILO", "MEGA", "GIGA", "TERA", "PETA")
    assert [getattr(units, name) for name in names] == [1e3, 1e6, 1e9, 1e12, 1e15]
    assert units.MICRO * units.MEGA == 1 and units.MILLI * units.KILO == 1


def test_binary_prefixes():
    assert [units.KIB, units.MIB, units.GIB] == [1024, 1048576, 1073741824]


def test_a_link_of_400_gigabit_carries_50_gigabyte():
    assert 400 * units.GIGA / units.BITS_PER_BYTE == 50 * units.GIGA
