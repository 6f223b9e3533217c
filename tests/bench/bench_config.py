"""How long a config takes to read and to count. Nothing here passes or fails on a time."""

import json
from pathlib import Path

import pytest

from cotune import count, layer
from cotune.config import read_config

DATA = Path(__file__).parent.parent / "data" / "configs"
SHIPPED = Path(count.__file__).parent / "data" / "models"
LARGEST = max(DATA.iterdir(), key=lambda path: path.stat().st_size)  # most bytes: lists of what is quantized
DEEPEST = SHIPPED / "llama-3.1-405b.json"  # most layers
WIDEST = SHIPPED / "nemotron-3-ultra-550b-a55b.json"  # most kinds of layers


def read_and_count(path):
    model = read_config(path)
    return (
        count.parameters(model).total,
        count.active_parameters(model).total,
        count.weight_bytes(model, "nvfp4").total,
        count.kv_bytes_per_token(model).total,
        count.kv_bytes(model, 8192).total,
        count.state_bytes(model).total,
        layer.decode_flops(model, 8192).total,
    )


@pytest.mark.parametrize("path", [LARGEST, DEEPEST, WIDEST], ids=lambda path: path.stem)
def test_read_and_count(benchmark, path):
    """From a file to every count."""
    benchmark(read_and_count, path)


def test_json_alone(benchmark):
    """What parsing the largest file takes by itself."""
    benchmark(lambda: json.loads(LARGEST.read_text(encoding="utf-8")))
