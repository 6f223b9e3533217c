"""Counts against published values and against what other tools got wrong, and what every count must obey."""

import csv
import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cotune import count, layer
from cotune.config import model_named, model_names, read_config
from cotune.formats import FORMATS, format_named
from cotune.model import Full, Latent, Layer, Model, StateSpace
from cotune.units import GIB, MIB

with (Path(__file__).parent / "data" / "cases_models.csv").open(newline="", encoding="utf-8") as table:
    CASES = {row["id"]: row for row in csv.DictReader(table)}
SHIPPED = Path(count.__file__).parent / "data" / "models"


def changed(name, **keys):
    """A shipped config with some keys of its text model changed: a sister of which we hold no file."""
    config = json.loads((SHIPPED / f"{name}.json").read_text(encoding="utf-8"))
    config.get("text_config", config).update(keys)
    return read_config(config)


def slope(name, format="bf16", tp=1):
    return count.kv_bytes_per_token(model_named(name), format, tp=tp).total


def window_every(n, names=("sliding_attention", "full_attention")):
    return [names[(i + 1) % n == 0] for i in range(24)]


GPT_OSS_20B = changed("gpt-oss-120b", num_hidden_layers=24, num_local_experts=32, layer_types=window_every(2))
GEMMA_31B = changed(
    "gemma-4-26b-a4b",
    num_hidden_layers=60,
    layer_types=(["sliding_attention"] * 5 + ["full_attention"]) * 10,
    num_key_value_heads=16,
    num_attention_heads=32,
    num_global_key_value_heads=4,
)
QWEN_122B = changed(
    "qwen3.5-35b-a3b",
    hidden_size=3072,
    num_hidden_layers=48,
    layer_types=(["linear_attention"] * 3 + ["full_attention"]) * 12,
    num_attention_heads=32,
    moe_intermediate_size=1024,
    shared_expert_intermediate_size=1024,
    linear_num_value_heads=64,
)
MAMBA = Layer(StateSpace(heads=128, head_dim=64, groups=8, state=128, conv=4), None, norms=1)
QWEN_2_5_72B = Model("qwen2.5-72b", 8192, 152064, False, (Layer(Full(64, 8, 128, qkv_bias=True), None),) * 80)


def qwen_next():
    """The growing KV bytes per token, and what they would be if every layer were full."""
    attention = Full(16, 2, 256)
    hybrid = Model("qwen3-next", 2048, 151936, False, (Layer(attention, None), *(MAMBA,) * 3) * 12)
    full = replace(hybrid, layers=(Layer(attention, None),) * 48)
    return tuple(count.kv_bytes_per_token(model).total for model in (hybrid, full))


def latent_duplication(tp):
    """How often a group of tp GPUs holds one latent cache."""
    (stream,) = count.caches(Latent(64, 1536, 512, 128, 64, 128))
    return count.pieces(stream.cut, tp) * tp / stream.cut


def longest_context(model, budget):
    """The most tokens of one sequence whose KV bytes fit in `budget`."""
    low, high = 1, 10**9
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if count.kv_bytes(model, middle).total <= budget else (low, middle)
    return low


def weight(name, part, of=0):
    """One Weight of a layer of a shipped model, by its name."""
    model = model_named(name)
    return next(w for w in count.layer_weights(model.layers[of], model.hidden) if w.name == part)


def mxfp4_scales(name):
    elements, f = count.parameters(model_named(name))["experts"], format_named("mxfp4")
    biases = 36 * 128 * (2 * 2880 + 2880)
    return (elements - biases) * f.scale_bits / f.block / 8


ANSWERS = {
    "kv-01": lambda: slope("llama-3.1-405b"),
    "kv-02": lambda: count.kv_bytes_per_token(QWEN_2_5_72B).total,
    "kv-03": lambda: slope("deepseek-v3"),
    "kv-04": lambda: count.kv_bytes(model_named("deepseek-v3"), 1_000_000, "fp8").total,
    "kv-07": qwen_next,
    "kv-09": lambda: latent_duplication(8),
    "kv-10": lambda: latent_duplication(16) / 8,  # 8 ways of context parallelism share the 16 copies
    "W02": lambda: slope("llama-3.1-70b"),
    "W03": lambda: slope("mixtral-8x22b"),
    "W05": lambda: slope("qwen3-235b-a22b"),
    "W07": lambda: slope("deepseek-v3"),
    "W09": lambda: 2 * 128 * (7168 // 128) * 2 * 61 / slope("deepseek-v3"),
    "W11": lambda: 65536 * slope("deepseek-v3") / 61 / 4 / MIB,  # 4 bits are a quarter of BF16; no scales
    "W12": lambda: count.kv_bytes(model_named("kimi-k2"), 131072).total / GIB,
    "W13": lambda: count.kv_bytes_first_token(model_named("gpt-oss-120b")).total,
    "W15": lambda: 32 * count.kv_bytes_reserved(GPT_OSS_20B, 8192).total / GIB,
    "W16": lambda: count.kv_bytes_per_token(GEMMA_31B).total,
    "W18": lambda: longest_context(model_named("gpt-oss-120b"), 5.38 * GIB),
    "W20": lambda: slope("nemotron-3-nano-30b-a3b"),
    "W22": lambda: count.state_bytes(Model("nemotron-3-super", 4096, 131072, False, (MAMBA,) * 40)).total,
    "W23": lambda: slope("nemotron-h-56b"),
    "W24": lambda: count.kv_bytes(model_named("qwen3.5-397b-a17b"), 131072).total / GIB,
    "W26": lambda: slope("qwen3-32b", tp=4),
    "W27": lambda: 8 * slope("qwen3.5-397b-a17b", tp=8),
    "W29": lambda: count.parameters(model_named("mixtral-8x7b")).total,
    "W32": lambda: count.weight_bytes(model_named("qwen3.5-27b")).total,
    "W33": lambda: model_named("llama-3.1-8b").layers[0].ffn.width / model_named("llama-3.1-8b").hidden,
    "W34": lambda: count.padded_vocab(model_named("qwen3-8b").vocab, 8),
    "W35": lambda: layer.decode_flops(model_named("mixtral-8x7b"), 1)["experts"],
    "W37": lambda: count.active_parameters(model_named("qwen3-30b-a3b")).total,
    "W38": lambda: count.weight_bytes(QWEN_122B).total,
    "W40": lambda: layer.distinct_experts(8, 2, 3),
    "W42": lambda: weight("deepseek-v3", "kv down").elements,
    "W43": lambda: count.weight_bytes(model_named("deepseek-v3"), "nvfp4")["experts"],
    "W45": lambda: mxfp4_scales("gpt-oss-120b"),
    "W46": lambda: format_named("nvfp4").bits_per_element,
    "W48": lambda: layer.decode_flops(model_named("llama-3.1-8b"), 1)["head"],
    "W49": lambda: layer.prefill_flops(model_named("llama-3.1-8b"), 8192)["scores"],
    "W51": lambda: 2 * layer.visible_pairs(100),
    "W52": lambda: 3 * layer.prefill_flops(model_named("qwen3.5-27b"), 4096)["scores"],
}


def test_every_case_has_an_answer_and_every_answer_a_case():
    assert set(CASES) == set(ANSWERS)


@pytest.mark.parametrize("id", ANSWERS)
def test_case(id):
    answer = ANSWERS[id]()
    answers = answer if isinstance(answer, tuple) else (answer,)
    assert list(answers) == pytest.approx([float(number) for number in CASES[id]["expected"].split(";")], rel=1e-6)


@pytest.mark.parametrize(
    ("name", "published"),
    [
        ("llama-3.1-8b", 8_030_261_248),
        ("mixtral-8x7b", 46_702_792_704),
        ("deepseek-v3", 671_026_419_200),
        ("qwen3-235b-a22b", 235_093_634_560),
    ],
)
def test_published_totals_exactly(name, published):
    assert count.parameters(model_named(name)).total == published


@pytest.mark.parametrize("name", model_names())
def test_parts_sum_and_active_lies_below_total(name):
    model = model_named(name)
    total, active = count.parameters(model), count.active_parameters(model)
    assert total.total == sum(total.parts.values()) == sum(w.elements * many for w, many in count.weights(model))
    assert all(isinstance(value, int) for value in total.parts.values())  # exact, no float on the way
    assert active.total <= total.total
    moe = "experts" in total.parts
    assert (active.total < total.total - (0 if model.tied else total["embedding"])) == moe
    with_embedding = count.active_parameters(model, embedding=True).total
    assert with_embedding - active.total == (0 if model.tied else total["embedding"])


@pytest.mark.parametrize("name", model_names())
def test_bf16_weights_are_two_bytes_per_parameter(name):
    model = model_named(name)
    assert count.weight_bytes(model).total == 2 * count.parameters(model).total


@pytest.mark.parametrize("name", model_names())
@pytest.mark.parametrize("format", FORMATS)
def test_narrow_formats_shrink_only_what_is_not_kept(name, format):
    model = model_named(name)
    narrow, wide = count.weight_bytes(model, format).parts, count.weight_bytes(model).parts
    assert all((narrow[part] == wide[part]) == (part in count.KEPT or format == "bf16") for part in wide)
    everything = count.weight_bytes(model, format, kept=()).total
    assert everything <= sum(narrow.values())


@given(name=st.sampled_from(model_names()), tp=st.sampled_from([1, 2, 4, 8, 16, 64, 256]))
@settings(max_examples=100, deadline=None)
def test_a_group_holds_at_least_one_copy_and_a_gpu_never_more_than_all(name, tp):
    model = model_named(name)
    for of in (count.weight_bytes, count.kv_bytes_per_token, count.state_bytes):
        one, whole = of(model, tp=tp).total, of(model).total
        assert one <= whole <= one * tp


@pytest.mark.parametrize(("tp", "copies"), [(1, 1), (2, 1), (4, 1), (8, 2), (16, 4)])
def test_kv_heads_are_copied_once_there_are_fewer_than_gpus(tp, copies):
    assert tp * slope("qwen3-235b-a22b", tp=tp) == copies * slope("qwen3-235b-a22b")


def test_latent_cache_is_whole_on_every_gpu():
    assert slope("deepseek-v3", tp=8) == slope("deepseek-v3")


@given(name=st.sampled_from(model_names()), context=st.integers(1, 2_000_000), page=st.sampled_from([1, 16, 64, 256]))
@settings(max_examples=150, deadline=None)
def test_what_is_needed_grows_and_never_passes_what_is_reserved(name, context, page):
    model = model_named(name)
    need, more = count.kv_bytes(model, context).total, count.kv_bytes(model, context + 128).total
    assert need <= more
    assert need <= count.kv_bytes_reserved(model, context, page=page).total
    assert count.kv_bytes(model, 1).total == count.kv_bytes_first_token(model).total


@pytest.mark.parametrize("name", model_names())
def test_past_every_window_the_cache_grows_by_the_slope(name):
    model, far = model_named(name), 1_048_576
    grown = count.kv_bytes(model, far + 128).total - count.kv_bytes(model, far).total
    assert grown == 128 * count.kv_bytes_per_token(model).total


def test_compressed_entries_come_once_their_group_is_whole():
    model = model_named("deepseek-v4-flash")
    parts = [count.kv_bytes(model, tokens).parts for tokens in (3, 4, 127, 128)]
    assert [p["index keys"] for p in parts] == [0, 21 * 128 * 2, 31 * 21 * 128 * 2, 32 * 21 * 128 * 2]
    assert parts[3]["compressed"] - parts[2]["compressed"] == (21 + 20) * 512 * 2


def test_pages_of_compressed_entries_hold_fewer_of_them():
    parts = count.kv_bytes_reserved(model_named("deepseek-v4-flash"), 1000, page=64).parts
    assert parts["window"] == 43 * 512 * 2 * 1024
    assert parts["compressed"] == (21 * 1024 / 4 + 20 * 1024 / 128) * 512 * 2


def test_contexts_may_be_an_array_of_any_shape():
    contexts = np.array([[1, 128, 129], [4096, 8192, 100_000]])
    for of in (count.kv_bytes, count.kv_bytes_reserved):
        got = of(model_named("gpt-oss-120b"), contexts).total
        assert got.shape == contexts.shape
        assert got[1, 1] == of(model_named("gpt-oss-120b"), 8192).total


def test_state_is_constant_and_only_in_hybrids():
    assert count.state_bytes(model_named("llama-3.1-8b")).total == 0
    nano = count.state_bytes(model_named("nemotron-3-nano-30b-a3b"))
    assert nano["recurrent state"] == 23 * 64 * 64 * 128 * 4
    assert nano["convolution inputs"] == 23 * (64 * 64 + 2 * 8 * 128) * 3 * 2


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: count.weight_bytes(m, "int4"), "unknown format 'int4'; known: bf16"),
        (lambda m: count.weight_bytes(m, tp=0), "tp must be a whole number of at least 1, got 0"),
        (lambda m: count.kv_bytes_per_token(m, tp=2.0), "tp must be a whole number of at least 1, got 2.0"),
        (lambda m: count.kv_bytes(m, 0), "context must be a finite number above 0, got 0"),
        (lambda m: count.kv_bytes_reserved(m, 10, page=True), "page must be a whole number of at least 1, got True"),
        (lambda m: count.padded_vocab(-1), "vocab must be a whole number of at least 1, got -1"),
        (lambda m: list(count.layer_weights(Layer("full", None), 64)), "unknown attention 'full'"),
    ],
)
def test_wrong_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call(model_named("qwen3-8b"))


def test_an_expected_number_of_tokens_cannot_be_a_fraction_of_an_expert():
    assert math.isclose(layer.distinct_experts(256, 8, 1), 8)


def test_a_published_checkpoint_is_counted_to_the_byte():
    """gpt-oss-120b on disk: experts in MXFP4, all else in BF16. Source: hf-mem issue 33."""
    kept = (*count.KEPT, "attention")
    assert count.weight_bytes(model_named("gpt-oss-120b"), "mxfp4", kept=kept).total == 65_248_815_744


def test_a_token_needs_the_used_copies_of_what_a_gpu_holds():
    weight = count.Weight("experts", "up", n=6, k=4, copies=8, used=2, cut=6)
    assert [weight.needed(tp) for tp in (1, 2, 4, 6, 12)] == [48, 24, 16, 8, 8]
    assert [weight.held(tp) for tp in (1, 2, 4, 6, 12)] == [192, 96, 64, 32, 32]
