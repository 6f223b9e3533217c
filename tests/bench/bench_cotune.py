"""How long cotune takes: `make bench`. Nothing here passes or fails on a time."""

import subprocess
import sys

import numpy as np
import pytest

from cotune import chip_named, gemm


@pytest.mark.parametrize("module", ["numpy", "cotune"])
def test_import(benchmark, module):
    """Start Python and import one module; the number in brackets is the ratio, what cotune adds to numpy."""
    command = [sys.executable, "-c", f"import {module}"]
    benchmark.pedantic(subprocess.run, (command,), {"check": True}, rounds=15, warmup_rounds=2)


@pytest.mark.parametrize("count", [1, 200, 10_000])
def test_gemm_time(benchmark, count):
    """The ideal time of `count` GEMMs in one call; 200 is one curve of a figure."""
    tokens = np.arange(1, count + 1) if count > 1 else 256
    chip = chip_named("gb300")
    benchmark(gemm.time, tokens, 8192, 512, chip, a="nvfp4", b="nvfp4", c="fp8")


def test_tokens_at_ridge(benchmark):
    """Where 200 layers meet the ridge point."""
    benchmark(
        gemm.tokens_at_ridge, np.linspace(1024, 16384, 200), 8192, chip_named("h100"), a="bf16", b="bf16", c="bf16"
    )
