"""How long calibrated GEMM times take: `make bench`. Nothing here passes or fails on a time."""

import numpy as np
import pytest

from cotune import gemm
from cotune.calibration import fit
from cotune.silicon import gemm_table


@pytest.mark.parametrize("kernel", ["bf16", "nvfp4"])
@pytest.mark.parametrize("count", [1, 200, 1_000_000])
def test_calibrated(benchmark, kernel, count):
    """The calibrated time of `count` different GEMMs in one call; wanted is a million in under 2 s on one core."""
    sizes = np.random.default_rng(0).integers(1, 32768, (3, count))
    benchmark.pedantic(gemm.calibrated, (*sizes, "gb300", kernel), rounds=3 if count > 1000 else 20, warmup_rounds=1)


def test_fit(benchmark):
    """Six parameters on the 906 rows of one chip and format."""
    table = gemm_table().where(chip="gb300", dtype="bfloat16")
    benchmark.pedantic(fit, (table,), rounds=3, warmup_rounds=1)
