"""torchao as judge of the block formats, torch of FP8 and BF16: the same bits for a million values.

They are the optional extra `judge`; without it these tests are skipped.
"""

import numpy as np
import pytest

from cotune.formats import quantize

torch = pytest.importorskip("torch")
mx = pytest.importorskip("torchao.prototype.mx_formats.mx_tensor")
nvfp4 = pytest.importorskip("torchao.prototype.mx_formats.nvfp4_tensor")

pytestmark = pytest.mark.filterwarnings("ignore")
ROWS, COLUMNS = 1024, 1024


def values(spread):
    """A million normal numbers, each block of 32 under a scale of its own, some blocks zero."""
    rng = np.random.default_rng(11)
    found = rng.standard_normal((ROWS, COLUMNS // 32, 32)) * 2.0 ** rng.uniform(
        -spread, spread, (ROWS, COLUMNS // 32, 1)
    )
    found[rng.random((ROWS, COLUMNS // 32)) < 0.02] = 0
    return found.reshape(ROWS, COLUMNS).astype(np.float32)


def unpacked(packed):
    """Two codes to a byte, the first in the lower half."""
    packed = packed.view(torch.uint8).numpy()
    return np.stack([packed & 15, packed >> 4], axis=-1).reshape(ROWS, COLUMNS)


@pytest.mark.parametrize(
    ("name", "element"),
    [
        ("mxfp4", "float4_e2m1fn_x2"),
        ("mxfp8", "float8_e4m3fn"),
        ("mxfp8_e5m2", "float8_e5m2"),
    ],
)
@pytest.mark.parametrize("spread", [0, 10, 100])
def test_mx_formats(name, element, spread):
    x = values(spread)
    scales, data = mx.to_mx(torch.from_numpy(x), getattr(torch, element), 32)
    q = quantize(x, name)
    assert np.array_equal(q.scales.view(np.uint8), scales.view(torch.uint8).numpy().reshape(q.scales.shape))
    theirs = unpacked(data) if name == "mxfp4" else data.view(torch.uint8).numpy()
    assert np.array_equal(q.elements.view(np.uint8), theirs)


def test_nvfp4_where_the_order_of_operations_does_not_matter():
    """torchao multiplies by a reciprocal where we divide. With factors that are powers of two both are exact."""
    rng = np.random.default_rng(12)
    x = rng.uniform(-6, 6, (ROWS, COLUMNS // 16, 16)).astype(np.float32)
    x[..., 0] = 6
    x *= 2.0 ** rng.integers(-5, 5, (ROWS, COLUMNS // 16, 1)).astype(np.float32)
    x = x.reshape(ROWS, COLUMNS)
    q = quantize(x, "nvfp4", tensor_scale=0.125)
    scales, data = nvfp4.nvfp4_quantize(torch.from_numpy(x), 16, torch.tensor(0.125))
    assert np.array_equal(q.scales.view(np.uint8), scales.view(torch.uint8).numpy().reshape(q.scales.shape))
    assert np.array_equal(q.elements.view(np.uint8), unpacked(data))


def test_nvfp4_elsewhere_differs_only_beside_an_edge():
    """Scales are equal; elements differ where quotient and product lie on two sides of an edge: 1 in 100,000."""
    x = values(3)
    x[x == 0] = 1  # torchao keeps block scales from 0, which moves no element
    total = nvfp4.per_tensor_amax_to_scale(torch.from_numpy(x).abs().max())
    q = quantize(x, "nvfp4")
    assert q.tensor_scale == float(total)
    scales, data = nvfp4.nvfp4_quantize(torch.from_numpy(x), 16, total)
    normal = q.scales.astype(float) >= 2.0**-6
    assert np.array_equal(
        q.scales.view(np.uint8)[normal], scales.view(torch.uint8).numpy().reshape(q.scales.shape)[normal]
    )
    different = (q.elements.view(np.uint8) != unpacked(data)) & np.repeat(normal, 16, axis=1)
    assert different.mean() < 1e-5


@pytest.mark.parametrize(
    ("name", "type_"), [("fp8", "float8_e4m3fn"), ("fp8_e5m2", "float8_e5m2"), ("bf16", "bfloat16")]
)
def test_plain_casts(name, type_):
    x = np.clip(values(9), -448, 448)
    theirs = torch.from_numpy(x).to(getattr(torch, type_))
    ours = quantize(x, name).elements
    assert np.array_equal(ours.view(np.uint8), theirs.view(torch.uint8).numpy())
