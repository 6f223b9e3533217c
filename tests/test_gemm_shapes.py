"""Reference cases on tiles, waves, alignment and shapes: tests/data/cases_gemm_shapes.csv and how cotune answers them.

Each row is what others published or worked out; an answer to a row with several numbers is a tuple.
"""

import csv
from pathlib import Path

import numpy as np
import pytest

from cotune import count, gemm
from cotune.units import MICRO

with (Path(__file__).parent / "data" / "cases_gemm_shapes.csv").open(newline="", encoding="utf-8") as table:
    CASES = {row["id"]: row for row in csv.DictReader(table)}


def spacing(columns):
    """The distance between the N at which tiles of so many columns are full."""
    n = np.arange(columns, 8 * columns + 1)
    full = n[gemm.tile_efficiency(8192, n, (256, columns)) == 1]
    return set(np.diff(full).tolist()).pop()


def on_sms(tiles, sms):
    return gemm.waves(tiles, sms), gemm.wave_efficiency(tiles, sms)


def block_elements(hidden):
    """Elements of the four matrices of a block with an FFN of 4 H; QKV, attention output, up, down."""
    return sum(n * k for _, n, k in gemm.linear_layers(1, hidden, 4 * hidden).values())


ANSWERS = {
    "tile-01": lambda: gemm.tile_efficiency(128, 641, (128, 128)),
    "tile-02": lambda: gemm.tile_efficiency(128, 640, (128, 128)),
    "tile-05": lambda: (gemm.shard(18432, 32), "no" if gemm.alignment(gemm.shard(18432, 32)) < 128 else "yes"),
    "tile-06": lambda: (spacing(2 * 128), spacing(4 * 128)),  # a cluster of two tiles, a grid array of four
    "wave-01": lambda: on_sms(109, 108),
    "wave-02": lambda: on_sms(150, 148),
    "wave-03": lambda: (gemm.tiles(2304, 1536, (256, 128)), *on_sms(gemm.tiles(2304, 1536, (256, 128)), 108)),
    "align-01": lambda: (gemm.elements_in(128, "bf16"), gemm.elements_in(128, "fp8"), 128 / 4),  # TF32 is 4 bytes
    "align-03": lambda: (count.padded_vocab(50257, multiple=64), gemm.padded(50257, 128)),
    "align-04": lambda: (8 * 4096 / 3, gemm.padded(8 * 4096 / 3, 256)),
    "align-05": lambda: tuple(gemm.shard(2560, heads) for heads in (32, 20, 40)),
    "shape-01": lambda: 32 * block_elements(4096) / block_elements(8192),
    "shape-02": lambda: tuple(gemm.latency_floor(layers, 2, 5 * MICRO) / MICRO for layers in (126, 61)),
    "W77": lambda: gemm.wave_efficiency(109, 108),
}


def expected(row):
    """The numbers and words of a row, an equation's right side where there is one."""
    parts = row["expected"].replace(" and ", ";").rpartition("= ")[2].split(";")
    return [part.strip() if part.strip() in ("yes", "no") else float(part) for part in parts]


def test_every_case_has_an_answer_and_every_answer_a_case():
    assert set(CASES) == set(ANSWERS)


@pytest.mark.parametrize("id", ANSWERS)
def test_case(id):
    answer = ANSWERS[id]()
    answers = list(answer) if isinstance(answer, tuple) else [answer]
    digits = 5e-7 if "e-" in CASES[id]["tolerance"] or "=" in CASES[id]["expected"] else 1e-12  # six printed digits
    wanted = expected(CASES[id])
    assert len(answers) == len(wanted)
    for got, want in zip(answers, wanted, strict=True):
        assert got == (want if isinstance(want, str) else pytest.approx(want, rel=max(digits, 1e-5 * (digits > 1e-9))))
