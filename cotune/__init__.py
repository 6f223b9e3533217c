"""cotune: how the shape of a language model meets its hardware."""

from cotune.chip import Chip, chip_named

__version__ = "0.1.0"
__all__ = ["Chip", "chip_named"]
