"""SI and binary constants. Everything inside cotune is in bytes, FLOP, seconds; these turn it into what people read."""

BITS_PER_BYTE = 8

KILO = 1e3
MEGA = 1e6
GIGA = 1e9
TERA = 1e12
PETA = 1e15

MICRO = 1e-6
MILLI = 1e-3

KIB = 2**10
MIB = 2**20
GIB = 2**30
