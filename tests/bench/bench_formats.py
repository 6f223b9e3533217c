"""How fast numbers are quantized: `make bench`. Nothing here passes or fails on a time."""

import numpy as np
import pytest

from cotune.formats import dequantize, quantize

VALUES = np.random.default_rng(0).standard_normal((1024, 4096)).astype(np.float32)


def told(benchmark):
    """Add million elements per second, on one core; wanted for NVFP4 are 100 and 200."""
    benchmark.extra_info["million elements/s"] = round(VALUES.size / benchmark.stats.stats.median / 1e6)


@pytest.mark.parametrize("format", ["nvfp4", "mxfp4", "mxfp8", "fp8", "bf16"])
def test_quantize(benchmark, format):
    benchmark.pedantic(quantize, (VALUES, format), rounds=20, warmup_rounds=2)
    told(benchmark)


def test_quantize_along_the_first_axis(benchmark):
    """Blocks that run across the rows in memory."""
    benchmark.pedantic(quantize, (VALUES, "nvfp4", 0), rounds=20, warmup_rounds=2)
    told(benchmark)


@pytest.mark.parametrize("format", ["nvfp4", "mxfp4", "mxfp8", "fp8", "bf16"])
def test_dequantize(benchmark, format):
    benchmark.pedantic(dequantize, (quantize(VALUES, format),), rounds=20, warmup_rounds=2)
    told(benchmark)
