"""FLOP, bytes and time of the kernels of a layer: against brute force, published values and the counts."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cotune import count, layer
from cotune.chip import chip_named
from cotune.config import model_named, model_names
from cotune.model import Compressed, Dense, Full, Latent, Layer, Linear, MoE, Sparse, StateSpace, Window
from cotune.roofline import Work

SMALL = st.integers(0, 60)
FULL = Full(heads=8, kv_heads=2, head_dim=64)
LATENT = Latent(heads=8, q_rank=96, kv_rank=64, nope=32, rope=16, v_dim=32)


@given(tokens=SMALL, prefix=SMALL, every=st.integers(1, 9), limit=st.integers(0, 9))
@settings(max_examples=300, deadline=None)
def test_visible_pairs_are_what_counting_them_gives(tokens, prefix, every, limit):
    seen = [p // every for p in range(prefix + 1, prefix + tokens + 1)]
    by_hand = sum(min(keys, limit) if limit else keys for keys in seen)
    assert layer.visible_pairs(tokens, prefix, every=every, limit=limit) == by_hand


@given(tokens=SMALL, prefix=SMALL, size=st.integers(1, 20))
def test_chunked_pairs_are_what_counting_them_gives(tokens, prefix, size):
    by_hand = sum((p - 1) % size + 1 for p in range(prefix + 1, prefix + tokens + 1))
    assert layer.chunked_pairs(tokens, prefix, size) == by_hand


@given(first=st.integers(1, 5000), second=st.integers(1, 5000), name=st.sampled_from(model_names()))
@settings(max_examples=100, deadline=None)
def test_a_prompt_in_two_chunks_costs_what_it_costs_at_once(first, second, name):
    model = model_named(name)
    chunks = layer.prefill_flops(model, first, logits=0).total + layer.prefill_flops(model, second, first).total
    assert chunks == layer.prefill_flops(model, first + second).total


@pytest.mark.parametrize("name", model_names())
def test_linear_layers_cost_two_flop_per_active_matrix_element(name):
    model = model_named(name)
    parts = layer.decode_flops(model, 1000).parts
    own = ("scores", "index scores", "state update")
    elements = sum(w.n * w.k * w.used * many for w, many in count.weights(model) if w.matrix)
    assert sum(value for part, value in parts.items() if part not in own) == 2 * elements
    assert 0.99 < elements / count.active_parameters(model).total <= 1  # the rest is norms, biases and filters


@pytest.mark.parametrize(
    ("attention", "context", "scores"),
    [
        (FULL, 1000, 4 * 8 * 64 * 1000),
        (Window(FULL, 128), 1000, 4 * 8 * 64 * 128),
        (Window(FULL, 128, chunked=True), 1000, 4 * 8 * 64 * 104),  # 1000 = 7 * 128 + 104
        (LATENT, 1000, 2 * 8 * (64 + 16 + 64) * 1000),
        (Sparse(LATENT, 256, 4, 32), 1000, 2 * 8 * (64 + 16 + 64) * 256),
        (Compressed(8, 64, 96, 2, 32, 128), 1000, 4 * 8 * 64 * 128),
        (Compressed(8, 64, 96, 2, 32, 128, every=16), 1000, 4 * 8 * 64 * (128 + 62)),
        (Compressed(8, 64, 96, 2, 32, 128, every=4, top=32, index_heads=4, index_dim=16), 1000, 4 * 8 * 64 * 160),
    ],
)
def test_one_decoded_token_sees_what_its_attention_lets_it_see(attention, context, scores):
    assert layer.attention_flops(attention, 1, context - 1, absorbed=True)["scores"] == scores


def test_an_indexer_scores_every_entry_and_one_that_is_shared_none():
    assert layer.attention_flops(Sparse(LATENT, 256, 4, 32), 1, 999)["index scores"] == 2 * 4 * 32 * 1000
    assert layer.attention_flops(Sparse(LATENT, 256, 0, 32), 1, 999)["index scores"] == 0
    v4 = Compressed(8, 64, 96, 2, 32, 128, every=4, top=32, index_heads=4, index_dim=16)
    assert layer.attention_flops(v4, 1, 999)["index scores"] == 2 * 4 * 16 * 250


@pytest.mark.parametrize("attention", [Linear(2, 4, 8, 16, 4), StateSpace(4, 8, 2, 16, 4)])
def test_recurrent_layers_cost_the_same_at_any_context(attention):
    near, far = (layer.attention_flops(attention, 1, prefix) for prefix in (0, 1_000_000))
    assert near == far and near["state update"] > 0


def test_unpacked_latent_attention_is_for_prefill():
    assert layer.attention_flops(LATENT, 10)["scores"] == 2 * 8 * (32 + 16 + 32) * 55
    assert layer.attention_flops(LATENT, 10, absorbed=True)["scores"] == 2 * 8 * (64 + 16 + 64) * 55


@given(
    experts=st.integers(1, 512), top=st.integers(1, 8), tokens=st.lists(st.integers(1, 10_000), min_size=2, max_size=4)
)
def test_distinct_experts_grow_from_top_k_to_all(experts, top, tokens):
    top = min(top, experts)
    hit = layer.distinct_experts(experts, top, np.array(sorted(tokens)))
    assert (np.diff(hit) >= -1e-9).all() and (hit <= experts + 1e-9).all()
    assert layer.distinct_experts(experts, top, 1) == pytest.approx(top)
    assert (hit <= top * np.array(sorted(tokens)) + 1e-9).all()


def test_distinct_experts_agree_with_drawing_them():
    rng = np.random.default_rng(7)
    draws = [len({e for _ in range(20) for e in rng.permutation(64)[:6]}) for _ in range(400)]
    assert np.mean(draws) == pytest.approx(layer.distinct_experts(64, 6, 20), rel=0.01)


@pytest.mark.parametrize("name", model_names())
def test_kernels_of_a_decode_step_do_the_flop_of_the_count(name):
    model, context = model_named(name), 4096
    found = [k for one in model.layers for k in layer.kernels(one, model.hidden, 1, context - 1)]
    found.append(layer.head_kernel(model, 1))
    flop = sum(kernel.work.flops for kernel in found)
    last = layer.flops(model, 1).parts.get("hyper-connections", 0) - sum(
        2 * w.n * w.k * many for w, many in count.weights(model) if w.name == "mixing"
    )  # the mixing before the head belongs to no layer
    assert flop + last == pytest.approx(layer.decode_flops(model, context).total, rel=1e-12)


@pytest.mark.parametrize("name", ["llama-3.1-70b", "mixtral-8x7b", "deepseek-v3", "glm-5", "nemotron-3-nano-30b-a3b"])
def test_a_decode_step_moves_the_active_weights_and_what_it_reads_of_the_cache(name):
    model, context = model_named(name), 1_000_000
    found = [k for one in model.layers for k in layer.kernels(one, model.hidden, 1, context - 1)]
    found.append(layer.head_kernel(model, 1))
    moved = sum(kernel.work.bytes for kernel in found)
    weights = 2 * count.active_parameters(model).total
    streams = [c for one in model.layers for c in count.caches(one.attention)]
    cache = sum(2 * c.elements * (c.top or context) for c in streams) + 2 * count.state_bytes(model).total
    assert moved == pytest.approx(weights + cache, rel=2e-3)  # activations and norms are the rest


def test_a_batch_reads_weights_once_and_every_cache():
    one, many = (layer.kernels(Layer(FULL, Dense(512)), 512, 1, 999, batch=b) for b in (1, 64))
    for a, b in zip(one, many, strict=True):
        assert b.work.flops == 64 * a.work.flops
        assert (
            b.work.bytes == pytest.approx(64 * a.work.bytes)
            if a.name == "attention"
            else b.work.bytes < 64 * a.work.bytes
        )


def test_a_prefill_behind_a_window_reads_the_window_and_what_is_new():
    entry = 2 * 2 * 64 * 2  # K and V of two KV heads of 64 in BF16
    for prefix, seen in ((0, 500), (100, 600), (10_000, 128 + 500)):
        found = layer.kernels(Layer(Window(FULL, 128), None), 512, 500, prefix)[-1]
        assert found.work.bytes == entry * (seen + 500)


def test_of_routed_experts_only_the_distinct_ones_are_read():
    up = next(k for k in layer.kernels(Layer(None, MoE(64, 6, 128)), 256, 1, batch=20) if k.part == "experts")
    matrix, rows = 2 * 128 * 256, 20 * 6
    expected = layer.distinct_experts(64, 6, 20) * matrix * 2 + rows * (256 + 2 * 128) * 2
    assert up.work == Work(2 * rows * matrix, pytest.approx(expected))


@pytest.mark.parametrize("tp", [2, 4])
def test_tensor_parallelism_shares_the_work_of_a_layer(tp):
    one, part = (layer.kernels(Layer(FULL, Dense(512)), 512, 16, 0, tp=n) for n in (1, tp))
    whole, shared = sum(k.work.flops for k in one), sum(k.work.flops for k in part)
    copied = 2 * 16 * 2 * (64 * 512) * (max(1, tp / 2) - 1) * 2 / tp  # the 2 KV heads' projections on 4 GPUs
    assert shared == pytest.approx(whole / tp + copied)


def test_formats_choose_the_unit_and_the_bytes():
    narrow = {k.name: k for k in layer.kernels(Layer(FULL, Dense(512)), 512, 1, weight="nvfp4", kv="fp8", act="nvfp4")}
    assert (narrow["q"].unit, narrow["attention"].unit) == ("fp4", "bf16")
    wide = {k.name: k for k in layer.kernels(Layer(FULL, Dense(512)), 512, 1, weight="nvfp4")}
    assert wide["q"].unit == "bf16"  # weights are widened to meet BF16 activations
    assert wide["q"].work.bytes == 512 * 512 * 0.5625 + 2 * (512 + 512)


def test_time_adds_over_kernels_that_run_one_after_the_other():
    chip, found = chip_named("h100"), layer.kernels(Layer(FULL, Dense(512)), 512, 1, 999)
    times = layer.time(found, chip)
    assert set(times.parts) == {"attention", "ffn"}
    slow = sum(max(k.work.flops / chip.peak(k.unit), k.work.bytes / chip.bandwidth) for k in found)
    assert times.total == pytest.approx(slow)


def test_arrays_of_contexts_come_back_as_arrays():
    model, contexts = model_named("deepseek-v4-flash"), np.array([1, 128, 4096, 1_000_000])
    got = layer.decode_flops(model, contexts).total
    assert got.shape == contexts.shape
    assert [float(value) for value in got] == [layer.decode_flops(model, int(c)).total for c in contexts]
    bytes_ = [k.work.bytes for k in layer.kernels(model.layers[2], model.hidden, 1, contexts)][-1]
    assert bytes_.shape == contexts.shape and (np.diff(bytes_) > 0).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: layer.decode_flops(m, 0), "context must be whole numbers of at least 1, got 0"),
        (lambda m: layer.decode_flops(m, "8"), "context must be whole numbers of at least 1, got '8'"),
        (lambda m: layer.prefill_flops(m, 1.5), "tokens must be whole numbers of at least 1, got 1.5"),
        (lambda m: layer.prefill_flops(m, 10, -1), "prefix must be whole numbers of at least 0, got -1"),
        (lambda m: layer.distinct_experts(8, 9, 1), "top must be at most experts, got 9.0 of 8.0"),
        (lambda m: layer.kernels(m.layers[0], m.hidden, 0), "tokens must be whole numbers of at least 1, got 0"),
    ],
)
def test_wrong_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call(model_named("qwen3-8b"))
