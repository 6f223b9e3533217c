"""cotune: how the shape of a language model meets its hardware."""

from importlib import import_module

from cotune.chip import Chip, chip_named

__version__ = "0.1.0"
__all__ = ["Chip", "Model", "chip_named", "model_named", "read_config"]

# Read on first use: `import cotune` stays about as cheap as `import numpy`.
_LATER = {"Model": "cotune.model", "model_named": "cotune.config", "read_config": "cotune.config"}


def __getattr__(name):
    if name in _LATER:
        return getattr(import_module(_LATER[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
