"""Every reference case that the package can answer: tests/data/cases.csv holds what others published or worked out.

`ANSWERS` says how cotune answers a row; a row with several numbers has a tuple. Rows of topic known-slip are values
that other tools got wrong; `expected` is the right one.
"""

import csv
import re
from pathlib import Path

import numpy as np
import pytest

from cotune import count, gemm, roofline
from cotune.chip import chip_named
from cotune.config import model_named
from cotune.formats import format_named, matrix_bytes, quantize, scale_bytes
from cotune.units import BITS_PER_BYTE, GIB, GIGA, MICRO, PETA, TERA

CASES = (Path(__file__).parent / "data" / "cases.csv").read_text(encoding="utf-8").splitlines()
CASES = {row["id"]: row for row in csv.DictReader(CASES)}
GB300 = chip_named("gb300")
ARTICLE = {"a": "nvfp4", "b": "nvfp4", "c": "fp8"}  # the formats of the article's Table 2


def ffn2(m):
    """Math, read and write time of the article's Table 2, in microseconds."""
    traffic = gemm.traffic(m, 8192, 512, **ARTICLE)
    math = gemm.time(m, 8192, 512, GB300, **ARTICLE).math
    return tuple(t / MICRO for t in (math, traffic.read / GB300.bandwidth, traffic.write_c / GB300.bandwidth))


def where_ridge(intensity_of, chip, unit):
    """The size at which a growing intensity meets the ridge point."""
    low, high = 1.0, 1e6
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (middle, high) if intensity_of(middle) < roofline.ridge(chip, unit) else (low, middle)
    return high


def weight_parts(n, k, name):
    """Bytes of an N x K weight matrix: elements, block scales, both."""
    total, scales = matrix_bytes(n, k, name), scale_bytes(n, k, name)
    assert total == gemm.traffic(1, n, k, a=name, b=name, c=name).read_b
    return total - scales, scales, total


def representable(name):
    """The magnitudes that elements of a format can have, found by rounding many numbers; block scales are 1."""
    largest = np.full((2048, 1), 6, np.float32)
    values = np.concatenate([largest, np.linspace(0, 6, 2048 * 15, dtype=np.float32).reshape(2048, 15)], axis=1)
    return tuple(np.unique(quantize(values, name, tensor_scale=1.0).elements.astype(float)).tolist())


def unpadded(rows, step):
    """The least K, in steps, whose scales fill whole tiles."""
    plain, tiled = ([scale_bytes(rows, k, "nvfp4", padded=p) for k in range(step, 512, step)] for p in (False, True))
    return step * (1 + next(i for i, (a, b) in enumerate(zip(plain, tiled, strict=True)) if a == b))


def bits(name):
    return format_named(name).bits_per_element


def peak(chip, format):
    return chip_named(chip).peak(format)


ANSWERS = {
    "gemm-01": lambda: ffn2(256)[0],
    "gemm-02": lambda: ffn2(256)[1],
    "gemm-03": lambda: ffn2(256)[2],
    "gemm-04": lambda: ffn2(2048)[0],
    "gemm-05": lambda: ffn2(2048)[1],
    "gemm-06": lambda: ffn2(2048)[2],
    "gemm-10": lambda: gemm.time(2048, 8192, 512, GB300, **ARTICLE).bound,
    "gemm-12": lambda: gemm.intensity(4096, 4096, 4096, a="bf16", b="bf16", c="bf16"),
    "gemm-15": lambda: where_ridge(lambda n: gemm.intensity(8192, n, 8448, **ARTICLE), GB300, "fp4"),
    "gemm-16": lambda: where_ridge(lambda k: gemm.intensity(8192, 9728, k, **ARTICLE), GB300, "fp4"),
    "roofline-01": lambda: roofline.ridge(GB300, "nvfp4"),
    "roofline-02": lambda: (roofline.ridge(GB300, "fp8"), roofline.ridge(GB300, "bf16")),
    "decode-01": lambda: gemm.intensity(16, 4096, 4096, a="bf16", b="nvfp4", c="bf16"),
    # Scores of one KV head: 16 query rows share its keys (128 of head size, any number of tokens).
    "attn-01": lambda: (
        gemm.flops(128 // 8, 4096, 128) / gemm.traffic(16, 4096, 128, a="bf16", b="bf16", c="bf16").read_b
    ),
    "nvfp4-01": lambda: bits("nvfp4"),
    "nvfp4-02": lambda: bits("mxfp4"),
    "nvfp4-04": lambda: (bits("bf16") / bits("nvfp4"), bits("fp8") / bits("nvfp4")),
    "nvfp4-07": lambda: weight_parts(8192, 512, "nvfp4"),
    "nvfp4-05": lambda: representable("nvfp4"),
    "nvfp4-06": lambda: 2688 / quantize(np.full(16, 2688.0), "nvfp4").tensor_scale,
    "nvfp4-09": lambda: unpadded(128, 16),
    "nvfp4-10": lambda: (
        count.weight_bytes(model_named("gpt-oss-120b"), "mxfp4", kept=(*count.KEPT, "attention")).total
        * BITS_PER_BYTE
        / count.parameters(model_named("gpt-oss-120b")).total
    ),
    "nvfp4-14": lambda: tuple(GB300.peak(unit) / PETA for unit in ("bf16", "fp8", "fp4")),
    "W43": lambda: 58 * 256 * 3 * weight_parts(7168, 2048, "nvfp4")[2],
    "W45": lambda: 36 * 128 * 3 * weight_parts(2880, 2880, "mxfp4")[1],
    "W46": lambda: bits("nvfp4"),
    "W48": lambda: gemm.flops(1, 128256, 4096),
    "W53": lambda: peak("h100", "bf16") / TERA,
    "W54": lambda: 480 * TERA / peak("h100", "bf16") * 100,
    "W57": lambda: peak("a100", "bf16") / TERA,
    "W59": lambda: peak("b200", "bf16") / TERA,
    "W61": lambda: chip_named("gb200").link_domain * peak("gb200", "bf16") / PETA,
    "W64": lambda: 494.7 * TERA / peak("h100", "bf16") * 100,
    "W65": lambda: chip_named("gb200").bandwidth / GIGA,
    "W67": lambda: chip_named("h100").value("nic_bandwidth") / GIGA,
    "W68": lambda: chip_named("h100").capacity / GIGA,
    "W69": lambda: 65248815744 / GIB,
    "W70": lambda: 2 * peak("h100", "fp8") / PETA,  # the sparse figure is twice the dense one
    "W71": lambda: chip_named("h100").link_bandwidth / GIGA,
    "W73": lambda: chip_named("a100").link_bandwidth / GIGA,
}

# This row's `expected` is measured; what a roofline has to say is in its tolerance: N of about 640.
MODEL_SAYS = {"gemm-15": ("640", 0.01)}


def relative(tolerance):
    """Turn the tolerance of a row into a relative one; words such as "exact" mean the last digit of a float."""
    number = re.match(r"([\d.]+(?:e-\d+)?)(%?)", tolerance)
    if not number:
        assert tolerance.startswith(("exact", "published")), tolerance
        return 1e-12
    return float(number[1]) / (100 if number[2] else 1)


def test_every_case_has_an_answer_and_every_answer_a_case():
    assert set(CASES) == set(ANSWERS)


@pytest.mark.parametrize("id", ANSWERS)
def test_case(id):
    row = CASES[id]
    expected, tolerance = MODEL_SAYS.get(id) or (row["expected"], relative(row["tolerance"]))
    answer = ANSWERS[id]()
    if isinstance(answer, str):
        assert answer == expected
    else:
        answers = answer if isinstance(answer, tuple) else (answer,)
        assert list(answers) == pytest.approx([float(number) for number in expected.split(";")], rel=tolerance)
