"""Read a Hugging Face config.json into a Model, and refuse what is not understood.

A key is one of three things: structural and read here, known to be harmless, or unknown. An unknown key refuses the
file, because a part that is skipped in silence makes every count wrong. A structural key that is missing is refused
too; the few that a family is known to leave out have the value of its own code, listed in families.py.
"""

import json
import os
import warnings
from dataclasses import replace
from functools import cache
from importlib import resources
from pathlib import Path

from cotune.arguments import one_of
from cotune.families import FAMILIES, SAME_AS, Family
from cotune.keys import REQUIRED, ConfigError, ConfigWarning, Keys, short
from cotune.model import Compressed, Dense, Full, Latent, Layer, Linear, Model, MoE, Sparse, StateSpace, Window

LARGEST_FILE = 10_000_000  # bytes; the largest real config we know has 90 thousand
NESTED = ("text_config", "llm_config", "language_config")


def _divides(many, few, many_name, few_name):
    if many % few:
        raise ConfigError(f"{many_name} is {many}, not a multiple of {few_name}, which is {few}.")


def _head_dim(keys, family, heads):
    """The size of one head; hidden_size / heads only where the family says so."""
    given = keys.integer("head_dim", "attention_head_dim", default=None)
    if given is not None:
        return given
    if family.head_dim:
        raise ConfigError("head_dim is missing; a config of this model_type must give it.")
    hidden = keys.integer("hidden_size")
    _divides(hidden, heads, "hidden_size", "num_attention_heads")
    return hidden // heads


def _qk_norm(keys, family, known):
    """Which query and key norms there are: the family's, or what use_qk_norm says where the family leaves it open."""
    asked = family.qk_norm == "said"
    given = keys.flag("use_qk_norm") if asked or keys.has("use_qk_norm") else None
    kind = keys.word("qk_norm_type", ("per_layer", "per_head"), default=None)
    if known and not asked:
        if given is not None and family.qk_norm != "unweighted" and given != bool(family.qk_norm):
            raise ConfigError(f"use_qk_norm is {short(given)}, but this model_type is always built the other way.")
        return family.qk_norm
    return ("all" if kind == "per_layer" else "head") if given else ""


def _biases(keys, family):
    qkv = keys.flag("attention_bias", default=family.qkv_bias)
    if keys.has("qkv_bias"):
        qkv = keys.flag("qkv_bias")
    return qkv, qkv if family.o_bias is None else family.o_bias


def _full(keys, family, known, **changed):
    """Grouped-query attention; `changed` replaces what a family's global layers have otherwise."""
    heads = keys.integer("num_attention_heads")
    kv_heads = changed.get("kv_heads") or keys.integer("num_key_value_heads")
    _divides(heads, kv_heads, "num_attention_heads", "num_key_value_heads")
    dim = changed.get("head_dim") or _head_dim(keys, family, heads)
    norm = {"head": 2 * dim, "all": (heads + kv_heads) * dim}.get(_qk_norm(keys, family, known), 0)
    qkv, o = _biases(keys, family)
    gated = keys.flag("attn_output_gate", default=family.gated_attention)
    shared = changed.get("shared_kv", False)
    return Full(heads, kv_heads, dim, norm, qkv, o, gated=gated, sinks=family.sinks, shared_kv=shared)


def _latent(keys, family):
    heads, nope = keys.integer("num_attention_heads"), keys.integer("qk_nope_head_dim")
    rope = keys.integer("qk_rope_head_dim")
    keys.skip("num_key_value_heads", "head_dim")  # both are there, and neither is the width of this cache
    if keys.integer("qk_head_dim", default=nope + rope) != nope + rope:
        raise ConfigError(f"qk_head_dim must be qk_nope_head_dim + qk_rope_head_dim = {nope + rope}.")
    if keys.flag("attention_bias", default=False):
        raise ConfigError("attention_bias is true; only false is understood for latent attention.")
    return Latent(
        heads, keys.nullable("q_lora_rank"), keys.integer("kv_lora_rank"), nope, rope, keys.integer("v_head_dim")
    )


def _index_owners(keys, n):
    """For each layer whether it runs its own indexer: a list, a pattern of F and S, or every so many layers."""
    if keys.has("indexer_types"):
        return keys.per_layer("indexer_types", n, {"full": True, "shared": False})
    every, offset = keys.integer("index_topk_freq", default=1), keys.integer("index_skip_topk_offset", default=2)
    return tuple(max(i - offset + 1, 0) % every == 0 for i in range(n))


def _sparse(keys, family, own):
    heads, dim = keys.integer("index_n_heads"), keys.integer("index_head_dim")
    return Sparse(_latent(keys, family), keys.integer("index_topk"), heads if own else 0, dim)


def _compressed(keys, every):
    """DeepSeek-V4: ratio 0 is a window, a ratio below 128 picks entries by an indexer, 128 reads them all."""
    if keys.integer("num_key_value_heads") != 1:
        raise ConfigError(f"num_key_value_heads is {keys.integer('num_key_value_heads')}; compressed attention has 1.")
    keys.skip("qk_rope_head_dim")
    if keys.flag("attention_bias", default=False):
        raise ConfigError("attention_bias is true; only false is understood for compressed attention.")
    heads, groups = keys.integer("num_attention_heads"), keys.integer("o_groups")
    _divides(heads, groups, "num_attention_heads", "o_groups")
    index = [keys.integer(name) for name in ("index_topk", "index_n_heads", "index_head_dim")]
    return Compressed(
        heads,
        keys.integer("head_dim"),
        keys.integer("q_lora_rank"),
        groups,
        keys.integer("o_lora_rank"),
        keys.integer("sliding_window"),
        every,
        *(index if every == 4 else ()),
    )


def _state_bytes(keys, name):
    return {"float32": 4, "bfloat16": 2, "float16": 2}[keys.word(name, _STATE_TYPES, default="float32")]


_STATE_TYPES = ("float32", "bfloat16", "float16")


def _linear(keys):
    key_heads, value_heads = keys.integer("linear_num_key_heads"), keys.integer("linear_num_value_heads")
    _divides(value_heads, key_heads, "linear_num_value_heads", "linear_num_key_heads")
    sizes = [keys.integer(f"linear_{name}") for name in ("key_head_dim", "value_head_dim", "conv_kernel_dim")]
    return Linear(key_heads, value_heads, *sizes, state_bytes=_state_bytes(keys, "mamba_ssm_dtype"))


def _state_space(keys):
    heads, groups = keys.integer("mamba_num_heads"), keys.integer("n_groups")
    _divides(heads, groups, "mamba_num_heads", "n_groups")
    keys.skip("expand")  # heads * head_dim is the inner width
    return StateSpace(
        heads,
        keys.integer("mamba_head_dim"),
        groups,
        keys.integer("ssm_state_size"),
        keys.integer("conv_kernel"),
        conv_bias=keys.flag("use_conv_bias", default=True),
        bias=keys.flag("use_bias", default=False) or keys.flag("mamba_proj_bias", default=False),
        state_bytes=_state_bytes(keys, "mamba_ssm_cache_dtype"),
    )


_TYPES = {"full_attention": "full", "sliding_attention": "window", "chunked_attention": "chunk"}
_TYPES |= {"linear_attention": "linear"}


def _attention_kinds(keys, family, n):
    """One kind per layer: every encoding that is there is read, and all must say the same."""
    said = {}
    if keys.has("layer_types"):
        said["layer_types"] = keys.per_layer("layer_types", n, _TYPES)
    if keys.has("full_attention_interval"):
        every = keys.integer("full_attention_interval")
        said["full_attention_interval"] = tuple("linear" if (i + 1) % every else "full" for i in range(n))
    if keys.has("sliding_window_pattern") or keys.has("_sliding_window_pattern"):
        every = keys.integer("sliding_window_pattern", "_sliding_window_pattern")
        said["sliding_window_pattern"] = tuple("window" if (i + 1) % every else "full" for i in range(n))
    if keys.has("attn_type_list"):
        said["attn_type_list"] = keys.per_layer("attn_type_list", n, {1: "full"})
    if "attention_chunk_size" in keys.data:
        said["attention_chunk_size"] = _chunk_kinds(keys, n)
    windows = keys.flag("use_sliding_window", default=family.all_windowed)
    if windows:
        said["use_sliding_window" if keys.has("use_sliding_window") else "sliding_window"] = _window_kinds(
            keys, family, n
        )
    elif keys.has("use_sliding_window"):  # false forbids windows and says nothing of other kinds
        keys.skip("sliding_window")
    if not said:
        if keys.has("sliding_window") and not keys.has("use_sliding_window"):
            raise ConfigError(f"sliding_window is {keys.data['sliding_window']}, but no key says which layers use it.")
        return ("full",) * n
    names, kinds = list(said), list(said.values())
    for name, other in zip(names[1:], kinds[1:], strict=True):
        if other != kinds[0]:
            raise ConfigError(f"{names[0]} and {name} disagree on the kind of at least one layer.")
    _check_kinds(keys, family, names[0], kinds[0])
    return kinds[0]


_CALLED = {"window": "sliding_attention", "chunk": "chunked_attention", "linear": "linear_attention"}


def _check_kinds(keys, family, name, kinds):
    """Refuse a kind of layer that the code of the family does not build, or that another key switches off."""
    for kind in set(kinds) - {"full", *family.kinds}:
        raise ConfigError(f"{name} asks for {_CALLED[kind]}, but no such layers are understood of this model_type.")
    if "window" in kinds and not keys.flag("use_sliding_window", default=True):
        raise ConfigError(f"{name} asks for {_CALLED['window']}, but use_sliding_window is false; it must be true.")


def _chunk_kinds(keys, n):
    """Llama 4: layers with rotary positions see a chunk; every fourth has none unless a list says which."""
    if keys.nullable("attention_chunk_size") == 0:
        return ("full",) * n
    every = keys.integer("no_rope_layer_interval", default=4)
    if keys.data.get("no_rope_layers"):
        return keys.per_layer("no_rope_layers", n, {1: "chunk", 0: "full"})
    return tuple("chunk" if (i + 1) % every else "full" for i in range(n))


def _window_kinds(keys, family, n):
    """Mistral: a window holds for all layers. Qwen: from max_window_layers on, and only if use_sliding_window."""
    optional = "sliding_window" not in keys.data and not family.all_windowed
    size = 0 if optional else keys.nullable("sliding_window", least=0)
    first = keys.integer("max_window_layers", default=0, least=0)
    return tuple("window" if size and i >= first else "full" for i in range(n))


_EXPERTS = ("num_experts", "n_routed_experts", "num_local_experts")
_TOP = ("num_experts_per_tok", "experts_per_token", "top_k_experts")


def _is_moe(keys, family):
    least = 1 if family.moe else 0
    return bool(keys.integer(*_EXPERTS, default=REQUIRED if family.moe else 0, least=least))


def _moe_layers(keys, family, n):
    """For each layer whether it has experts: every encoding that is there is read, and all must say the same."""
    said = {}
    if keys.has("mlp_layer_types"):
        said["mlp_layer_types"] = keys.per_layer("mlp_layer_types", n, {"dense": False, "sparse": True, "moe": True})
        keys.skip("moe_layer_freq")
    if keys.has("first_k_dense_replace"):
        first = keys.integer("first_k_dense_replace", least=0, most=n)
        every = keys.integer("moe_layer_freq", default=1)
        said["first_k_dense_replace"] = tuple(i >= first and i % every == 0 for i in range(n))
    if keys.has("decoder_sparse_step"):
        every, dense = keys.integer("decoder_sparse_step"), keys.indices("mlp_only_layers", n)
        said["decoder_sparse_step"] = tuple((i + 1) % every == 0 and i not in dense for i in range(n))
    if keys.has("interleave_moe_layer_step"):
        every = keys.integer("interleave_moe_layer_step")
        said["interleave_moe_layer_step"] = tuple((i + 1) % every == 0 for i in range(n))
    if keys.has("moe_layers"):
        chosen = keys.indices("moe_layers", n)
        said["moe_layers"] = tuple(i in chosen for i in range(n))
    if not said:
        return _all_moe(keys, family, n)
    first = next(iter(said))
    for name, kinds in said.items():
        if kinds != said[first]:
            raise ConfigError(f"{first} and {name} disagree on which layers have experts.")
    return said[first]


def _all_moe(keys, family, n):
    """Every layer has experts where the config gives no second width that a dense layer could have."""
    if keys.has("mlp_only_layers") and keys.indices("mlp_only_layers", n):
        raise ConfigError(
            "decoder_sparse_step is missing; mlp_only_layers alone does not say which layers have experts."
        )
    if keys.has(family.dense_width) and keys.has(family.expert_width) and family.dense_width != family.expert_width:
        raise ConfigError(
            f"{family.dense_width} is {short(keys.data[family.dense_width])}, "
            "but no key says which layers are dense; first_k_dense_replace or mlp_layer_types would."
        )
    return (True,) * n


def _dense(keys, family):
    return Dense(keys.integer(family.dense_width), family.gated, keys.flag("mlp_bias", default=False))


def _shared_width(keys, family, known, width):
    """The width of all shared experts together."""
    if family.shared == "one":
        return width
    kind = family.shared if known else "count" if keys.has("n_shared_experts") else "width"
    required = REQUIRED if family.shared else 0
    if kind in ("count", "count and width"):
        own = REQUIRED if kind == "count and width" else width
        each = keys.integer("moe_shared_expert_intermediate_size", default=own)
        return keys.integer("n_shared_experts", default=required, least=0) * each
    total = keys.integer("shared_expert_intermediate_size", "shared_intermediate_size", default=required, least=0)
    if known and not family.shared and total:
        raise ConfigError(f"shared_expert_intermediate_size is {total}; this model_type has no shared expert, so 0.")
    return total


def _experts(keys):
    """(number of experts, how many of them a token uses), under whatever names the config gives them."""
    experts, top = keys.integer(*_EXPERTS), keys.integer(*_TOP)
    if top > experts:
        raise ConfigError(
            f"{keys.named(_TOP)} is {top}; it must be at most {keys.named(_EXPERTS)}, which is {experts}."
        )
    return experts, top


def _moe(keys, family, known, hashed=False):
    experts, top = _experts(keys)
    if keys.flag("mlp_bias", default=False):
        raise ConfigError("mlp_bias is true; only false is understood beside experts.")
    width = keys.integer(family.expert_width)
    steered = keys.flag("use_routing_bias", default=family.selection_bias)
    if not known and keys.data.get("topk_method") == "noaux_tc":
        steered = True
    return MoE(
        experts,
        top,
        width,
        gated=family.gated,
        bias=family.expert_bias,
        shared=_shared_width(keys, family, known, width),
        shared_gate=family.shared_gate,
        router_bias=family.router_bias,
        selection_bias=steered and not hashed,
        hashed=hashed,
    )


_OF_BLOCK = {  # the keys that only one kind of layer reads
    "M": ("mamba_num_heads", "mamba_head_dim", "mamba_proj_bias", "mamba_ssm_cache_dtype", "n_groups", "expand")
    + ("ssm_state_size", "conv_kernel", "use_conv_bias", "use_bias"),
    "*": ("num_attention_heads", "num_key_value_heads", "head_dim", "attention_head_dim", "attention_bias"),
    "E": ("n_routed_experts", "n_shared_experts", "num_experts_per_tok", "moe_intermediate_size", "moe_latent_size")
    + ("moe_shared_expert_intermediate_size",),
    "-": ("mlp_bias",),
}


def _mixers(keys, family, known, n):
    """The attention of each layer, equal ones the same object."""
    make = {"full": lambda: _full(keys, family, known)}
    make["window"] = lambda: Window(make["full"](), keys.integer("sliding_window"))
    make["chunk"] = lambda: Window(make["full"](), keys.integer("attention_chunk_size"), chunked=True)
    make["linear"] = lambda: _linear(keys)
    make["latent"] = lambda: _latent(keys, family)
    make["sparse"], make["reuse"] = (lambda: _sparse(keys, family, True)), (lambda: _sparse(keys, family, False))
    if family.attention and keys.has("layer_types"):
        keys.per_layer("layer_types", n, {"full_attention": 1} if family.attention == "latent" else _INDEXED)
    if family.attention == "latent":
        kinds = ("latent",) * n
    elif family.attention == "sparse":
        kinds = tuple("sparse" if own else "reuse" for own in _index_owners(keys, n))
    else:
        kinds = _attention_kinds(keys, family, n)
    if set(kinds) == {"linear"}:
        keys.used.update((*_OF_BLOCK["*"], "attn_output_gate"))
    if known and "linear" in family.kinds and "linear" not in kinds:  # an unknown family may have such layers
        keys.used.update(name for name in keys.data if name.startswith("linear_") or name == "mamba_ssm_dtype")
    made = {kind: make[kind]() for kind in dict.fromkeys(kinds)}
    return tuple(made[kind] for kind in kinds)


def _ffns(keys, family, known, n):
    """The FFN of each layer, equal ones the same object."""
    sparse, made = (False,) * n, {}
    if _is_moe(keys, family):
        sparse, made = _moe_layers(keys, family, n), {True: _moe(keys, family, known)}
    if not all(sparse):
        made[False] = _dense(keys, family)
    keys.skip("intermediate_size", "max_window_layers")
    if "mlp_only_layers" in keys.data:
        keys.indices("mlp_only_layers", n)
    return tuple(made[kind] for kind in sparse)


def _plain_layers(keys, family, known):
    """Layers of an attention and an FFN, each of a kind that the config tells per layer."""
    n = keys.integer("num_hidden_layers")
    pairs = zip(_mixers(keys, family, known, n), _ffns(keys, family, known, n), strict=True)
    return tuple(Layer(attention, ffn, norms=family.norms) for attention, ffn in pairs)


_INDEXED = {"indexed_attention": 1}
_COMPRESSED = {"sliding_attention": 0, "compressed_sparse_attention": 4, "heavily_compressed_attention": 128}


def _compress_ratios(keys, n):
    """Tokens per compressed entry of each layer: numbers, or names of kinds with a table of their rates."""
    if keys.has("compress_ratios") or not keys.has("layer_types"):
        return keys.per_layer("compress_ratios", n, {0: 0, 4: 4, 128: 128}, extra=_mtp(keys))
    rates = keys.value("compress_rates", REQUIRED)
    if rates != {name: rate for name, rate in _COMPRESSED.items() if rate}:
        raise ConfigError(f"compress_rates is {short(rates)}; only a rate of 4 with an indexer and 128 is understood.")
    return keys.per_layer("layer_types", n, _COMPRESSED)


def _deepseek_v4_layers(keys, family):
    """DeepSeek-V4: a compression ratio per layer, experts everywhere, the first ones chosen by a table of tokens."""
    n, streams = keys.integer("num_hidden_layers"), keys.integer("hc_mult")
    ratios = _compress_ratios(keys, n)
    if keys.has("mlp_layer_types"):
        hashed = keys.per_layer("mlp_layer_types", n, {"hash_moe": True, "moe": False})
    else:
        first = keys.integer("num_hash_layers", least=0, most=n)
        hashed = tuple(i < first for i in range(n))
    attention = {every: _compressed(keys, every) for every in set(ratios)}
    ffn = {kind: _moe(keys, family, True, hashed=kind) for kind in (True, False)}
    return tuple(Layer(attention[a], ffn[f], streams=streams) for a, f in zip(ratios, hashed, strict=True))


def _global_heads(keys, kinds, shared, local):
    """(KV heads, head size) of Gemma's global layers: two keys of their own, or the same entry for each such layer."""
    if not keys.has("per_layer_config"):
        few = keys.integer("num_global_key_value_heads") if shared else local.kv_heads
        return few, keys.integer("global_head_dim")
    table = keys.value("per_layer_config", REQUIRED)
    layers = {str(i).zfill(2) for i, kind in enumerate(kinds) if kind == "full"}
    entries = list(table.values()) if isinstance(table, dict) else []
    same = entries and isinstance(entries[0], dict) and all(entry == entries[0] for entry in entries)
    if not same or set(table) != layers:
        raise ConfigError(f"per_layer_config is {short(table)}; it must give every global layer the same entry.")
    own = Keys(entries[0])
    found = own.integer("num_key_value_heads", default=local.kv_heads), own.integer("head_dim")
    own.refuse_rest()
    return found


def _gemma4_layers(keys, family):
    """Gemma 4: global layers with heads of their own, whose V comes from K, and a dense layer beside the experts."""
    kinds = _attention_kinds(keys, family, keys.integer("num_hidden_layers"))
    local, size = _full(keys, family, True), keys.integer("sliding_window")
    shared = keys.flag("attention_k_eq_v")
    few, dim = _global_heads(keys, kinds, shared, local)
    wide = _full(keys, family, True, kv_heads=few, head_dim=dim, shared_kv=shared)
    attention, dense = {"full": wide, "window": Window(local, size)}, _dense(keys, family)
    norms, ffn = family.norms, dense
    if keys.flag("enable_moe_block"):
        ffn, norms = (
            MoE(*_experts(keys), keys.integer("moe_intermediate_size"), router_scales=True, beside=dense),
            norms + 3,
        )
    return tuple(Layer(attention[kind], ffn, norms=norms, scalars=1) for kind in kinds)


_BLOCKS = {"mamba": "M", "attention": "*", "moe": "E", "mlp": "-", "linear_attention": "M", "full_attention": "*"}


def _block_letters(keys):
    """One of M*E- per layer, from a list of words or a string of letters; both must say the same."""
    listed, pattern, letters = keys.data.get("layers_block_type"), keys.data.get("hybrid_override_pattern"), None
    n = keys.integer("num_hidden_layers", default=len(listed) if isinstance(listed, list) else REQUIRED)
    if listed is not None:
        letters = keys.per_layer("layers_block_type", n, _BLOCKS)
    if letters and pattern is None:
        return letters
    pattern = keys.value("hybrid_override_pattern", REQUIRED)
    if not (isinstance(pattern, str) and len(pattern) == n and set(pattern) <= set(_OF_BLOCK)):
        raise ConfigError(f"hybrid_override_pattern is {short(pattern)}; it must be {n} letters out of M*E-.")
    if letters not in (None, tuple(pattern)):
        raise ConfigError("layers_block_type and hybrid_override_pattern disagree on the kind of at least one layer.")
    return tuple(pattern)


def _nemotron_h_layers(keys, family):
    """Nemotron-H: each layer is a mixer, an attention, a dense FFN or experts."""
    letters = _block_letters(keys)
    keys.skip("intermediate_size")
    for letter in set(_OF_BLOCK) - set(letters):  # files give the sizes of every kind, whether it occurs or not
        keys.used.update(_OF_BLOCK[letter])
    make = {
        "M": lambda: Layer(_state_space(keys), None, norms=1),
        "*": lambda: Layer(_full(keys, family, True), None, norms=1),
        "-": lambda: Layer(None, _dense(keys, family), norms=1),
        "E": lambda: Layer(None, _nemotron_moe(keys, family), norms=1),
    }
    made = {letter: make[letter]() for letter in dict.fromkeys(letters)}
    return tuple(made[letter] for letter in letters)


def _nemotron_moe(keys, family):
    """The latent width of the experts; files that list their blocks always say it, if only as null."""
    moe = _moe(keys, family, True)
    latent = keys.nullable("moe_latent_size") if keys.has("layers_block_type") else 0
    return replace(moe, latent=latent)


def _blocks(keys, n):
    """The attention and the FFN entry of each of the blocks that a search has shaped one by one (Nemotron NAS)."""
    blocks = keys.value("block_configs", REQUIRED)
    if not isinstance(blocks, list) or len(blocks) != n:
        raise ConfigError(f"block_configs must be a list with one entry for each of the {n} layers.")
    for block in blocks:
        if not isinstance(block, dict) or set(block) != {"attention", "ffn"}:
            raise ConfigError(f"block_configs holds {short(block)}; each entry must have an attention and an ffn.")
        if not all(isinstance(part, dict) for part in block.values()):
            raise ConfigError(f"block_configs holds {short(block)}; its attention and its ffn must be objects.")
        yield Keys(block["attention"]), Keys(block["ffn"])


def _searched_layers(keys, family):
    """Nemotron NAS: per block its own number of KV heads and FFN width, or no attention or FFN at all."""
    n, heads, hidden = (keys.integer(k) for k in ("num_hidden_layers", "num_attention_heads", "hidden_size"))
    keys.skip("num_key_value_heads", "intermediate_size")
    layers, bias = [], keys.flag("mlp_bias", default=False)
    for attention, ffn in _blocks(keys, n):
        made_a, made_f = None, None
        if not attention.flag("no_op"):
            group = attention.integer("n_heads_in_group")
            _divides(heads, group, "num_attention_heads", "n_heads_in_group")
            made_a = _full(keys, family, True, kv_heads=heads // group)
        if not ffn.flag("no_op"):
            width = int(2 * ffn.number("ffn_mult") * hidden / 3)
            made_f = Dense(-(-width // 256) * 256, bias=bias)  # to the next multiple of 256
        for part in (attention, ffn):
            part.used.update(("n_heads_in_group", "ffn_mult"))
            part.refuse_rest()
        if made_a or made_f:
            layers.append(Layer(made_a, made_f, norms=(made_a is not None) + (made_f is not None)))
    return tuple(layers)


def _mtp(keys):
    """How many layers for multi-token prediction the config announces."""
    names = ("num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_modules")
    return max(keys.integer(name, default=0, least=0) for name in names)


def _guess(keys):
    """A Family for a model_type we do not know, from its keys alone."""
    attention = "latent" if keys.has("kv_lora_rank") else ""
    if attention and keys.has("index_topk"):
        attention = "sparse"
    width = "moe_intermediate_size" if keys.has("moe_intermediate_size") else "intermediate_size"
    keys.word("hidden_act", ("silu", "swish"))  # only with these does everyone use a gate
    return Family(attention=attention, expert_width=width, kinds=tuple(_CALLED))


def _layers(keys, family, name, known):
    if name == "deepseek_v4":
        return _deepseek_v4_layers(keys, family)
    if name == "gemma4_text":
        return _gemma4_layers(keys, family)
    if name == "nemotron_h":
        return _nemotron_h_layers(keys, family)
    if name == "nemotron-nas":
        return _searched_layers(keys, family)
    return _plain_layers(keys, family, known)


def _text_part(data):
    """The keys of the text model: a nested config is lifted out, and what is left beside it must be harmless."""
    nested = [name for name in NESTED if isinstance(data.get(name), dict)]
    if not nested:
        return dict(data)
    inner, outer = dict(data[nested[0]]), {k: v for k, v in data.items() if k != nested[0]}
    for name in ("tie_word_embeddings", "model_type"):
        if outer.get(name) is not None and name not in inner:
            inner[name] = outer[name]
    if None is not outer.get("tie_word_embeddings") != inner.get("tie_word_embeddings"):
        raise ConfigError(f"tie_word_embeddings differs between the top level and {nested[0]}; it must be the same.")
    _check_wrapper(outer.get("model_type"), inner.get("model_type"), nested[0])
    rest = Keys(outer)
    rest.used.add("tie_word_embeddings")
    rest.refuse_rest()
    return inner


def _check_wrapper(outer, inner, place):
    """Refuse a top level that names one known family around another; a wrapper we do not know may hold any."""
    if not isinstance(outer, str) or not isinstance(inner, str):
        return
    outer_family, inner_family = SAME_AS.get(outer, outer), SAME_AS.get(inner, inner)
    known = outer in FAMILIES or {outer_family, inner_family} <= set(FAMILIES)
    if known and outer_family != inner_family:
        raise ConfigError(f"model_type is {short(outer)}, but {short(inner)} in {place}; they must fit each other.")


def _load(source):
    """(the dict, a name) from a path, a dict or JSON text; every way that can fail ends in a ConfigError."""
    if isinstance(source, dict):
        return source, None
    if isinstance(source, str) and source.lstrip()[:1] in ("{", "["):
        return _parse(source, "the text"), None
    if not isinstance(source, (str, os.PathLike)):
        raise ConfigError(f"a config must be a path, a dict or JSON text, got {type(source).__name__}.")
    path, shown = Path(source), short(str(source), 200)
    try:
        if path.is_dir():
            path = path / "config.json"
            if not path.exists():
                raise ConfigError(f"the folder {shown} holds no config.json.")
        text = _read(path, shown)
    except ConfigError:
        raise
    except UnicodeDecodeError as error:
        raise ConfigError(f"{shown} is not a text file: {error}.") from None
    except (OSError, ValueError) as error:
        raise ConfigError(f"{shown} cannot be read: {getattr(error, 'strerror', None) or error}.") from None
    name = path.parent.name if path.name == "config.json" else path.stem.removesuffix("_config")
    return _parse(text, shown), name


def _read(path, shown):
    """The text of a regular file that is not too large; a pipe or a device could have no end."""
    if not path.is_file():
        if path.exists():
            raise ConfigError(f"{shown} is not a regular file; a config must be one.")
        raise ConfigError(f"{shown} cannot be read: there is no such file.")
    with path.open("rb") as file:
        data = file.read(LARGEST_FILE + 1)
    if len(data) > LARGEST_FILE:
        raise ConfigError(f"{shown} has more than {LARGEST_FILE} bytes; a config has at most {LARGEST_FILE}.")
    return data.decode("utf-8-sig")  # some editors begin a file with a byte order mark


def _parse(text, where):
    if len(text) > LARGEST_FILE:
        raise ConfigError(f"{where} has {len(text)} characters; a config has at most {LARGEST_FILE}.")
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{where} is not JSON: {error}.") from None


def _quantized(data):
    """What a quantization_config calls the format of its checkpoint; "" where there is none."""
    for part in (data, *(data[name] for name in NESTED if isinstance(data.get(name), dict))):
        given = part.get("quantization_config")
        if isinstance(given, dict):
            names = [given.get(key) for key in ("quant_algo", "quant_method")]
            return next((name[:60] for name in names if isinstance(name, str) and name.isprintable()), "unnamed")
    return ""


def read_config(source, *, name=None):
    """Return the Model of a Hugging Face config.json, given as a path, a dict or JSON text.

    name : what to call the model; else the name of the file or its model_type.

    Errors: ConfigError where it is not JSON, not a model config, lacks a structural key or holds one that is not
    understood. A model_type we do not know is read by its keys, with a ConfigWarning.
    Source: config.json of the models in data/models, and their code in the transformers library 5.24.

    >>> read_config('{"model_type": "llama", "hidden_size": 4096}')
    Traceback (most recent call last):
    ...
    cotune.keys.ConfigError: tie_word_embeddings is missing; a config of this model_type must give it.
    """
    data, found = _load(source)
    if not isinstance(data, dict):
        raise ConfigError(f"a config must be a JSON object, got {short(data)}.")
    keys = Keys(_text_part(data))
    if not keys.has("model_type"):
        raise ConfigError("model_type is missing; the config.json of every language model gives it.")
    kind = keys.word("model_type")
    alias = SAME_AS.get(kind, kind)
    known = alias in FAMILIES
    family = FAMILIES[alias] if known else _guess(keys)
    keys.need(family.needs)
    tied = keys.flag("tie_word_embeddings", default=REQUIRED if family.tied is None else family.tied)
    context = keys.integer("max_position_embeddings", default=None)
    hidden, vocab = keys.integer("hidden_size"), keys.integer("vocab_size")
    try:
        layers = _layers(keys, family, alias, known)
        rest = {"streams": layers[0].streams if layers else 0, "mtp": _mtp(keys), "quantized": _quantized(data)}
        model = Model(name or found or kind, hidden, vocab, tied, layers, kind, context, **rest)
    except ValueError as error:  # what a part of the model refuses, if the checks here let it through
        raise error if isinstance(error, ConfigError) else ConfigError(f"{error}.") from None
    keys.refuse_rest()
    if not known:
        _warn_guessed(kind, layers)
    return model


def _warn_guessed(kind, layers):
    parts = sorted({type(part).__name__ for x in layers for part in (x.attention, x.ffn) if part is not None})
    warnings.warn(
        f"model_type {kind!r} is not known; its keys were read as {', '.join(parts)} with two norms per layer. "
        "Query and key norms, biases and gates that no key shows are not counted.",
        ConfigWarning,
        stacklevel=3,
    )


@cache
def model_names():
    """Return the names of the models shipped with cotune, sorted.

    >>> len(model_names()), model_names()[0]
    (28, 'deepseek-r1')
    """
    files = resources.files("cotune") / "data" / "models"
    return tuple(sorted(f.name.removesuffix(".json") for f in files.iterdir() if f.name.endswith(".json")))


@cache
def _shipped(name):
    text = (resources.files("cotune") / "data" / "models" / f"{name}.json").read_text(encoding="utf-8")
    return read_config(text, name=name)


def model_named(name):
    """Return the shipped Model called `name`, read from its real config.json.

    Errors: ValueError listing the known names.

    >>> len(model_named("deepseek-v3").layers)
    61
    """
    return _shipped(one_of("model", name, model_names()))
