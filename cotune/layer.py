"""FLOP, bytes and ideal time of the kernels of a layer, for new tokens that follow a prefix already in the cache.

Counted are matrix products and the attention's two products; norms, softmax, short convolutions and rotations are not.
`tokens` new tokens per sequence follow `prefix` cached ones; a decode step at context S is 1 token after S - 1.
"""

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np

from cotune import count, roofline
from cotune.arguments import positive
from cotune.count import Breakdown, pieces
from cotune.formats import format_named, multiply_unit
from cotune.model import Compressed, Full, Latent, Linear, Sparse, StateSpace, Window
from cotune.roofline import Work

# FLOP per state element and token of the recurrent form. Delta rule: decay 1, read 2, write 2, output 2.
LINEAR_FLOPS = 7
# Mamba-2: decay 1, write 2, output 2.
STATE_SPACE_FLOPS = 5


@dataclass(frozen=True)
class Kernel:
    """One kernel: which `part` of a breakdown it belongs to, its `work`, and the `unit` of the chip that multiplies."""

    part: str
    name: str
    work: Work
    unit: str


def _least(a, b):
    """The smaller of two numbers or arrays; whole numbers stay exact."""
    return min(a, b) if np.ndim(a) == 0 and np.ndim(b) == 0 else np.minimum(a, b)


def _whole(name, value, least):
    """Whole numbers as Python int (exact), arrays of them as float."""
    numbers = np.asarray(value, dtype=float) if not isinstance(value, (str, bool)) else np.asarray(np.nan)
    if not (np.isfinite(numbers).all() and (numbers >= least).all() and (numbers == np.floor(numbers)).all()):
        raise ValueError(f"{name} must be whole numbers of at least {least}, got {value!r}")
    return int(numbers) if numbers.ndim == 0 else numbers


def visible_pairs(tokens, prefix=0, *, every=1, limit=0):
    """Return the (query, key) pairs of causal attention: sum over the new positions p of min(floor(p / every), limit).

    tokens, prefix : new and cached tokens of one sequence, numbers or arrays; p runs from prefix + 1 on.
    every : tokens per key; limit : keys a query sees at most, 0 for all. Sequences add: two prompts of 100 tokens are
    2 * visible_pairs(100), not visible_pairs(200).

    >>> visible_pairs(8192) == 8192 * 8193 // 2, visible_pairs(1, 4095), visible_pairs(1000, limit=128)
    (True, 4096, 119872)
    """
    tokens, prefix = _whole("tokens", tokens, 0), _whole("prefix", prefix, 0)
    return _pairs_up_to(prefix + tokens, every, limit) - _pairs_up_to(prefix, every, limit)


def _pairs_up_to(n, every, limit):
    """Sum of min(floor(p / every), limit) for p = 1 ... n."""
    growing = _least(n, limit * every) if limit else n
    q = growing // every
    total = every * (q * (q - 1) // 2) + q * (growing % every + 1)
    return total + limit * (n - growing) if limit else total


def chunked_pairs(tokens, prefix, size):
    """Return the pairs of attention inside blocks of `size` tokens: position p sees (p - 1) % size + 1 keys.

    >>> chunked_pairs(10, 0, 4)  # two blocks of 1 + 2 + 3 + 4, and 1 + 2
    23
    """
    tokens, prefix = _whole("tokens", tokens, 0), _whole("prefix", prefix, 0)

    def up_to(n):
        blocks, rest = n // size, n % size
        return blocks * (size * (size + 1) // 2) + rest * (rest + 1) // 2

    return up_to(prefix + tokens) - up_to(prefix)


def distinct_experts(experts, top, tokens):
    """Return the expected number of distinct experts T tokens reach under uniform routing: E (1 - (1 - k/E)^T).

    >>> distinct_experts(8, 2, 3)  # Mixtral, a batch of 3
    4.625
    """
    experts, top = positive("experts", experts), positive("top", top)
    if np.any(np.asarray(top) > experts):
        raise ValueError(f"top must be at most experts, got {top} of {experts}")
    return experts * (1 - (1 - top / experts) ** positive("tokens", tokens))


def attention_flops(a, tokens, prefix=0, *, absorbed=False, tp=1):
    """Return {name: FLOP} of what one attention does beside its projections, on one GPU.

    Full: 4 heads head_dim pairs (queries with keys, weights with values). Latent: heads of nope + rope and v_dim, or,
    `absorbed` (as engines decode), of kv_rank + rope and kv_rank: more FLOP, but the small cache is read as it is.
    Sparse reads `top` tokens, absorbed, and its indexer scores all. Linear and state-space: a constant per token.

    >>> from cotune.model import Full
    >>> 32 * attention_flops(Full(32, 8, 128), 8192)["scores"]  # Llama-3.1-8B, 8192 tokens
    17594333528064
    """
    match a:
        case Full():
            return {"scores": _scores(a.heads, 2 * a.head_dim, visible_pairs(tokens, prefix), tp)}
        case Window(over=o, size=size, chunked=chunked):
            pairs = chunked_pairs(tokens, prefix, size) if chunked else visible_pairs(tokens, prefix, limit=size)
            return {"scores": _scores(o.heads, 2 * o.head_dim, pairs, tp)}
        case Latent():
            dims = 2 * a.kv_rank + a.rope if absorbed else a.nope + a.rope + a.v_dim
            return {"scores": _scores(a.heads, dims, visible_pairs(tokens, prefix), tp)}
        case Sparse(over=o):
            pairs = visible_pairs(tokens, prefix, limit=a.top)
            index = 2 * a.index_heads * a.index_dim * visible_pairs(tokens, prefix)
            return {"scores": _scores(o.heads, 2 * o.kv_rank + o.rope, pairs, tp), "index scores": index}
        case Compressed():
            return _compressed_flops(a, tokens, prefix, tp)
        case Linear():
            state = pieces(a.value_heads, tp) * a.key_dim * a.value_dim
            return {"state update": LINEAR_FLOPS * state * _whole("tokens", tokens, 0)}
        case StateSpace():
            state = pieces(a.heads, tp) * a.head_dim * a.state
            return {"state update": STATE_SPACE_FLOPS * state * _whole("tokens", tokens, 0)}
    return {}


def _scores(heads, dims, pairs, tp):
    """Two products per head and pair: with keys and with values of `dims` channels together."""
    return 2 * pieces(heads, tp) * dims * pairs


def _compressed_flops(a, tokens, prefix, tp):
    pairs = visible_pairs(tokens, prefix, limit=a.window)
    if a.every:
        pairs = pairs + visible_pairs(tokens, prefix, every=a.every, limit=a.top)
    found = {"scores": _scores(a.heads, 2 * a.head_dim, pairs, tp)}
    if a.top:
        entries = visible_pairs(tokens, prefix, every=a.every)
        found["index scores"] = 2 * a.index_heads * a.index_dim * entries
    return found


def flops(model, tokens, prefix=0, *, logits=1, absorbed=False, tp=1):
    """Return the Breakdown of FLOP of one sequence on one GPU: 2 per weight and token, and the attention's own.

    logits : tokens whose logits are made; the embedding is looked up, not multiplied. absorbed : as in attention_flops

    >>> from cotune.config import model_named
    >>> m = model_named("deepseek-v3")
    >>> packed, plain = (flops(m, 1, 4095, absorbed=absorbed)["scores"] for absorbed in (True, False))
    >>> packed / plain  # (512 + 64 + 512) / (128 + 64 + 128) channels per head
    3.4
    """
    tokens = _whole("tokens", tokens, 1)
    parts = {}

    def add(part, value):
        parts[part] = parts.get(part, 0) + value

    for w, many in count.weights(model):
        if w.matrix:
            add(w.part, 2 * w.needed(tp) * many * (logits if w.part == "head" else tokens))
    for attention, many in Counter(layer.attention for layer in model.layers).items():
        for name, value in attention_flops(attention, tokens, prefix, absorbed=absorbed, tp=tp).items():
            add(name, value * many)
    return Breakdown(parts)


def decode_flops(model, context, *, tp=1):
    """Return the Breakdown of FLOP to make one token that sees `context` tokens, itself included, on one GPU.

    Latent attention is counted absorbed: queries meet the latent itself, so a head costs 2 (kv_rank + rope) FLOP per
    token for its score and 2 kv_rank for its values, not 2 (nope + rope) and 2 v_dim. prefill_flops counts the latter,
    save for sparse layers, which are absorbed in both.

    >>> from cotune.config import model_named
    >>> f = decode_flops(model_named("llama-3.1-8b"), 1024)
    >>> f["head"], f["scores"]  # the head is 2 * 128256 * 4096 whether tied or not
    (1050673152, 536870912)
    """
    return flops(model, 1, _whole("context", context, 1) - 1, absorbed=True, tp=tp)


def prefill_flops(model, tokens, prefix=0, *, logits=1, tp=1):
    """Return the Breakdown of FLOP to read `tokens` tokens after `prefix` cached ones, on one GPU.

    logits : tokens whose logits are made: 1 when serving, all `tokens` when scoring a text.
    Latent attention works on unpacked keys and values; unpacking those of the prefix again is not counted.

    >>> from cotune.config import model_named
    >>> f = prefill_flops(model_named("mixtral-8x7b"), 1)
    >>> f["experts"]  # two of eight experts
    22548578304
    """
    return flops(model, tokens, prefix, logits=logits, tp=tp)


def _linear_kernel(w, rows, weight, act, tp):
    """The GEMM of one Weight for `rows` tokens; of routed experts, the expected distinct ones are read."""
    held = pieces(w.cut, tp) / w.cut
    n, k = (w.n, w.k * held) if w.rows else (w.n * held, w.k)
    reached = distinct_experts(w.copies, w.used, rows) if w.copies > 1 else 1
    narrow = weight if w.part not in count.KEPT else "bf16"
    bytes_act, bytes_weight = format_named(act).bytes_per_element, format_named(narrow).bytes_per_element
    moved = reached * n * k * bytes_weight + rows * w.used * (n + k) * bytes_act
    return Kernel(w.part, w.name, Work(2 * rows * w.used * n * k, moved), multiply_unit(act, narrow))


def _attention_kernel(a, tokens, prefix, batch, kv, act, tp):
    """Scores over the cache: every entry a query needs is read once per sequence, the new ones are written."""
    flop = batch * sum(attention_flops(a, tokens, prefix, absorbed=bool(np.all(tokens == 1)), tp=tp).values())
    entry, moved = format_named(kv).bytes_per_element, 0
    for c in count.caches(a):
        seen = (prefix + tokens) / c.every
        seen = np.minimum(seen, c.limit + tokens) if c.limit else seen
        seen = np.minimum(seen, c.top * tokens) if c.top else seen
        moved = moved + c.held(tp) * entry * (seen + tokens / c.every)
    state = sum(count.state_parts(a, tp))
    return Kernel("attention", "attention", Work(flop, batch * (moved + 2 * state)), multiply_unit("bf16", kv))


def kernels(layer, hidden, tokens, prefix=0, *, batch=1, weight="bf16", kv="bf16", act="bf16", tp=1):
    """Return the Kernels of one layer for `batch` sequences of `tokens` new tokens each after `prefix` cached ones.

    weight, kv, act : formats of weights, cache and activations; routers stay in BF16.

    >>> from cotune.config import model_named
    >>> m = model_named("llama-3.1-8b")
    >>> [kernel.name for kernel in kernels(m.layers[0], m.hidden, 1)]
    ['q', 'k', 'v', 'o', 'up and gate', 'down', 'attention']
    >>> kernels(m.layers[0], m.hidden, 1)[0].work.flops  # 2 * 4096 * 4096
    33554432.0
    """
    tokens, prefix, batch = _whole("tokens", tokens, 1), _whole("prefix", prefix, 0), positive("batch", batch)
    found = [_linear_kernel(w, batch * tokens, weight, act, tp) for w in count.layer_weights(layer, hidden) if w.matrix]
    if layer.attention is not None:
        found.append(_attention_kernel(layer.attention, tokens, prefix, batch, kv, act, tp))
    return tuple(found)


def head_kernel(model, rows, *, weight="bf16", act="bf16", tp=1):
    """Return the Kernel of the output head for `rows` tokens.

    >>> from cotune.config import model_named
    >>> head_kernel(model_named("llama-3.1-8b"), 1).work.flops  # 2 * 128256 * 4096
    1050673152.0
    """
    head = count.weights(model)[-1][0]
    return _linear_kernel(replace(head, copies=1), positive("rows", rows), weight, act, tp)


def time(found, chip):
    """Return the Breakdown of ideal seconds of `found` Kernels on `chip`; kernels run one after the other.

    >>> from cotune.chip import chip_named
    >>> from cotune.config import model_named
    >>> m = model_named("llama-3.1-8b")
    >>> t = time(kernels(m.layers[0], m.hidden, 1, 8191), chip_named("h100"))
    >>> round(32 * t.total * 1e3, 2)  # ms: 15 GB of weights and cache at 3.35 TB/s
    4.49
    """
    parts = {}
    for kernel in found:
        if np.all(np.asarray(kernel.work.flops) > 0):
            parts[kernel.part] = parts.get(kernel.part, 0) + roofline.time(kernel.work, chip, kernel.unit).total
    return Breakdown(parts)


def attention_time(model, chip, tokens, prefix=0, *, batch=1, kv="bf16"):
    """Return the ideal seconds of all attention of a Model, projections left out: its scores over the cache.

    tokens, prefix, batch, kv : as in `kernels`. Times of kernels add.

    >>> from cotune.config import model_named
    >>> m = model_named("llama-3.1-8b")
    >>> round(attention_time(m, "h100", 1, 8191) * 1e3, 2)  # ms: 1.07 GB of cache at 3.35 TB/s
    0.32
    """
    total = 0
    for one, many in Counter(model.layers).items():
        if one.attention is not None:
            *_, last = kernels(one, model.hidden, tokens, prefix, batch=batch, kv=kv)
            total = total + many * roofline.time(last.work, chip, last.unit).total
    return total
