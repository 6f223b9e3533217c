"""cotune: how the shape of a language model meets its hardware."""

from cotune.chip import Chip, chip_named
from cotune.config import model_named, read_config
from cotune.model import Model

__version__ = "0.1.0"
__all__ = ["Chip", "Model", "chip_named", "model_named", "read_config"]
