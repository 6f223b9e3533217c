"""Times of whole models: linear layers calibrated, attention ideal, and what a faster part does to the whole."""

from dataclasses import replace

import numpy as np
import pytest

from cotune import count, gemm, layer
from cotune.config import model_named

LLAMA = model_named("llama-3.1-8b")


def test_a_model_takes_the_sum_of_its_layers():
    sizes = ((6144, 4096), (4096, 4096), (28672, 4096), (4096, 14336))
    block = sum(gemm.calibrated(64, n, k, "b200", "nvfp4").total for n, k in sizes)
    head = gemm.calibrated(1, 128256, 4096, "b200", "bf16").total
    found = gemm.model_times(LLAMA, 64, "b200", "nvfp4")
    assert found.total == pytest.approx(32 * block + head, rel=1e-12)
    assert found["head"] == pytest.approx(head, rel=1e-12)


def test_what_is_kept_runs_in_bf16():
    wide = gemm.model_times(LLAMA, 64, "b200")
    kept = gemm.model_times(LLAMA, 64, "b200", "nvfp4", kept=(*count.KEPT, "attention"))
    assert kept["attention"] == wide["attention"] and kept["ffn"] < wide["ffn"]
    assert gemm.model_times(LLAMA, 64, "b200", "nvfp4", kept=("attention", "ffn", "head")).parts == wide.parts


def test_times_are_never_below_the_bytes():
    """A decode step reads every weight but the embedding once."""
    for name in ("qwen3-0.6b", "llama-3.1-8b", "llama-3.1-405b"):
        m = model_named(name)
        read = count.weight_bytes(m).total - (0 if m.tied else 2 * m.vocab * m.hidden)
        assert gemm.model_times(m, 1, "h200").total > read / 4.8e12


def test_a_cut_model_is_faster_but_not_in_proportion():
    one, eight = (gemm.model_times(LLAMA, 16, "h200", logits=16, tp=tp).total for tp in (1, 8))
    assert one / 8 < eight < one


def test_routed_experts_are_refused():
    with pytest.raises(ValueError, match="mixtral-8x7b has routed experts"):
        gemm.model_times(model_named("mixtral-8x7b"), 16, "gb300")


def test_an_unknown_kernel_is_refused():
    with pytest.raises(ValueError, match="kernel"):
        gemm.model_times(LLAMA, 16, "gb300", "int4")


def test_the_articles_share_of_attention():
    """NVIDIA's article: attention is 77 % of the time. Endlessly fast attention makes the whole 1 / 0.23 faster."""
    assert gemm.amdahl(0.77, 1e12) == pytest.approx(1 / 0.23)
    assert gemm.amdahl(0.77, 1.0) == 1
    assert gemm.amdahl(1, 6) == 6
    assert gemm.amdahl(np.array([0.5, 1.0]), 2.0).tolist() == [1 / 0.75, 2.0]


@pytest.mark.parametrize(("share", "speedup", "named"), [(1.2, 2, "share"), (0, 2, "share"), (0.5, 0, "speedup")])
def test_amdahl_refuses(share, speedup, named):
    with pytest.raises(ValueError, match=named):
        gemm.amdahl(share, speedup)


def test_attention_reads_its_cache():
    context, batch = 32768, 64
    bytes_read = batch * count.kv_bytes(LLAMA, context).total
    assert layer.attention_time(LLAMA, "gb300", 1, context - 1, batch=batch) == pytest.approx(
        bytes_read / 8e12, rel=0.02
    )
    narrow = layer.attention_time(LLAMA, "gb300", 1, context - 1, batch=batch, kv="nvfp4")
    assert narrow == pytest.approx(bytes_read / 8e12 * 4.5 / 16, rel=0.02)


def test_attention_of_a_prefill_is_arithmetic():
    flop = layer.prefill_flops(LLAMA, 32768)["scores"]
    assert layer.attention_time(LLAMA, "gb300", 32768) == pytest.approx(flop / 2.5e15, rel=0.01)


def test_layers_without_attention_cost_nothing():
    bare = replace(LLAMA, layers=tuple(replace(x, attention=None) for x in LLAMA.layers))
    assert layer.attention_time(bare, "gb300", 128) == 0
