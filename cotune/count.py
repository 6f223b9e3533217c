"""Parameters, weight bytes and cache bytes of a model: every count is a sum over its tuple of layers.

Not counted: a vision or audio tower, layers for multi-token prediction. Counted: every learned number of the text
model, the routers' selection biases included, so totals equal what the transformers library builds.
`tp` is the number of GPUs that share the model by tensor parallelism; results are then bytes of the fullest GPU.
"""

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np

from cotune.arguments import positive
from cotune.formats import format_named
from cotune.model import Compressed, Full, Latent, Linear, MoE, Sparse, StateSpace, Window

CONV_BYTES = 2  # engines keep the last inputs of a short convolution in BF16
KEPT = ("embedding", "head", "router", "norms", "hyper-connections")  # what quantized checkpoints leave in BF16


@dataclass(frozen=True)
class Breakdown:
    """A result and what it is made of: `parts` maps a name to its share, `total` is their sum."""

    parts: dict

    @property
    def total(self):
        return sum(self.parts.values())

    def __getitem__(self, part):
        return self.parts[part]


@dataclass(frozen=True)
class Weight:
    """One kind of weight of a layer: `copies` matrices of `n` outputs by `k` inputs, `used` of which a token needs.

    part   : what it belongs to in a breakdown; matrix : multiplied with the token (not a norm, bias, table, filter)
    cut    : the number of equal pieces tensor parallelism can deal out; 1 is replicated on every GPU
    rows   : the pieces share out the inputs instead of the outputs, and the partial results are added afterwards
    """

    part: str
    name: str
    n: int
    k: int = 1
    copies: int = 1
    used: int = 1
    cut: int = 1
    matrix: bool = True
    rows: bool = False

    @property
    def elements(self):
        return self.n * self.k * self.copies

    def held(self, tp):
        """Elements on the fullest of `tp` GPUs."""
        return dealt(self.elements, self.cut, tp)

    def needed(self, tp):
        """Elements that one token multiplies with on the fullest of `tp` GPUs: those of `used` copies."""
        return dealt(self.n * self.k * self.used, self.cut, tp)


@dataclass(frozen=True)
class Cache:
    """One stream of a KV cache: `elements` per entry, an entry per `every` tokens, at most `limit` entries.

    top : entries that one token reads; limit and top are 0 where there is no such bound
    """

    part: str
    elements: int
    cut: int = 1
    every: int = 1
    limit: int = 0
    top: int = 0

    def held(self, tp):
        """Elements of one entry on the fullest of `tp` GPUs."""
        return dealt(self.elements, self.cut, tp)


def dealt(elements, cut, tp):
    """Return how many of `elements` the fullest of `tp` GPUs holds when they are dealt out in `cut` equal pieces."""
    return elements // cut * pieces(cut, tp)


def pieces(cut, tp):
    """Return how many of `cut` equal pieces the fullest of `tp` GPUs holds: ceil(cut / tp).

    It is never less than one: with more GPUs than pieces, the group holds the pieces pieces * tp / cut times over.

    >>> pieces(8, 4), pieces(2, 8)  # 2 KV heads on 8 GPUs: every GPU holds one, the group 4 copies
    (2, 1)
    """
    return -(-cut // positive_whole("tp", tp))


def positive_whole(name, value):
    """Return `value` if it is a whole number of at least 1, else raise ValueError."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise ValueError(f"{name} must be a whole number of at least 1, got {value!r}")
    return int(value)


def _vector(part, name, n, **more):
    return Weight(part, name, n, matrix=False, **more)


def _full_weights(a, hidden):
    q, kv = a.heads * a.head_dim, a.kv_heads * a.head_dim
    yield Weight("attention", "q", q * (2 if a.gated else 1), hidden, cut=a.heads)
    yield Weight("attention", "k", kv, hidden, cut=a.kv_heads)
    if not a.shared_kv:
        yield Weight("attention", "v", kv, hidden, cut=a.kv_heads)
    yield Weight("attention", "o", hidden, q, cut=a.heads, rows=True)
    if a.qkv_bias:
        yield _vector("attention", "q bias", q * (2 if a.gated else 1), cut=a.heads)
        yield _vector("attention", "k and v bias", kv * (1 if a.shared_kv else 2), cut=a.kv_heads)
    if a.o_bias:
        yield _vector("attention", "o bias", hidden)
    yield _vector("attention", "q and k norms", a.qk_norm)
    yield _vector("attention", "sinks", a.heads if a.sinks else 0, cut=a.heads)


def _latent_weights(a, hidden):
    queries = a.heads * (a.nope + a.rope)
    if a.q_rank:
        yield Weight("attention", "q down", a.q_rank, hidden)
    yield Weight("attention", "q up", queries, a.q_rank or hidden, cut=a.heads)
    yield Weight("attention", "kv down", a.kv_rank + a.rope, hidden)
    yield Weight("attention", "kv up", a.heads * (a.nope + a.v_dim), a.kv_rank, cut=a.heads)
    yield Weight("attention", "o", hidden, a.heads * a.v_dim, cut=a.heads, rows=True)
    yield _vector("attention", "latent norms", a.q_rank + a.kv_rank)


def _indexer_weights(a, hidden, q_rank):
    """The indexer of Sparse and Compressed layers without what makes its keys."""
    yield Weight("attention", "index q", a.index_heads * a.index_dim, q_rank)
    yield Weight("attention", "index head weights", a.index_heads, hidden)


def _sparse_weights(a, hidden):
    yield from _latent_weights(a.over, hidden)
    if a.index_heads:
        yield from _indexer_weights(a, hidden, a.over.q_rank)
        yield Weight("attention", "index k", a.index_dim, hidden)
        yield _vector("attention", "index k norm", 2 * a.index_dim)


def _compressor_weights(name, width, overlap, every, hidden):
    """What turns `every` tokens into one entry of `width`; overlapping groups need two series of it."""
    yield Weight("attention", f"{name} kv", width * overlap, hidden)
    yield Weight("attention", f"{name} gate", width * overlap, hidden)
    yield _vector("attention", f"{name} positions and norm", every * width * overlap + width)


def _compressed_weights(a, hidden):
    yield Weight("attention", "q down", a.q_rank, hidden)
    yield Weight("attention", "q up", a.heads * a.head_dim, a.q_rank, cut=a.heads)
    yield Weight("attention", "kv", a.head_dim, hidden)
    yield Weight("attention", "o down", a.o_groups * a.o_rank, a.heads * a.head_dim // a.o_groups, cut=a.o_groups)
    yield Weight("attention", "o up", hidden, a.o_groups * a.o_rank, cut=a.o_groups, rows=True)
    yield _vector("attention", "latent norms and sinks", a.q_rank + a.head_dim + a.heads)
    if a.every:
        yield from _compressor_weights("compressor", a.head_dim, 2 if a.top else 1, a.every, hidden)
    if a.top:
        yield from _indexer_weights(a, hidden, a.q_rank)
        yield from _compressor_weights("index", a.index_dim, 2, a.every, hidden)


def _linear_weights(a, hidden):
    keys, values = a.key_heads * a.key_dim, a.value_heads * a.value_dim
    yield Weight("mixer", "q and k", 2 * keys, hidden, cut=a.key_heads)
    yield Weight("mixer", "v and gate", 2 * values, hidden, cut=a.value_heads)
    yield Weight("mixer", "decay and rate", 2 * a.value_heads, hidden, cut=a.value_heads)
    yield Weight("mixer", "o", hidden, values, cut=a.value_heads, rows=True)
    yield _vector("mixer", "convolution of q and k", 2 * keys * a.conv, cut=a.key_heads)
    yield _vector("mixer", "convolution of v", values * a.conv, cut=a.value_heads)
    yield _vector("mixer", "decay", 2 * a.value_heads, cut=a.value_heads)
    yield _vector("mixer", "norm", a.value_dim)


def _state_space_weights(a, hidden):
    inner, shared = a.heads * a.head_dim, 2 * a.groups * a.state
    taps = a.conv + (1 if a.conv_bias else 0)
    yield Weight("mixer", "x, gate and step", 2 * inner + a.heads, hidden, cut=a.heads)
    yield Weight("mixer", "B and C", shared, hidden, cut=a.groups)
    yield Weight("mixer", "o", hidden, inner, cut=a.heads, rows=True)
    yield _vector("mixer", "convolution of x", inner * taps, cut=a.heads)
    yield _vector("mixer", "convolution of B and C", shared * taps, cut=a.groups)
    yield _vector("mixer", "decay, skip, step and norm", 3 * a.heads + inner, cut=a.heads)
    if a.bias:
        yield _vector("mixer", "biases", 2 * inner + a.heads + shared + hidden)


def _attention_weights(a, hidden):
    match a:
        case Full():
            return _full_weights(a, hidden)
        case Window():
            return _full_weights(a.over, hidden)
        case Latent():
            return _latent_weights(a, hidden)
        case Sparse():
            return _sparse_weights(a, hidden)
        case Compressed():
            return _compressed_weights(a, hidden)
        case Linear():
            return _linear_weights(a, hidden)
        case StateSpace():
            return _state_space_weights(a, hidden)
        case None:
            return ()
    raise ValueError(f"unknown attention {a!r}; known: the kinds of cotune.model")


def _pair(part, width, hidden, gated, bias, copies=1, used=1):
    """An FFN of `width` between `hidden` inputs and outputs: up (and gate), then down."""
    many = {"copies": copies, "used": used}
    ups = 2 if gated else 1
    yield Weight(part, "up and gate" if gated else "up", ups * width, hidden, cut=width, **many)
    yield Weight(part, "down", hidden, width, cut=width, rows=True, **many)
    if bias:
        yield _vector(part, "up bias", ups * width, cut=width, **many)
        yield _vector(part, "down bias", hidden, **many)


def _moe_weights(f, hidden):
    yield Weight("router", "router", f.experts, hidden)
    yield _vector("router", "biases", f.experts * (f.router_bias + f.selection_bias))
    if f.router_scales:
        yield _vector("router", "scales", hidden + f.experts)
    if f.latent:
        yield Weight("shared experts", "latent down", f.latent, hidden)
        yield Weight("shared experts", "latent up", hidden, f.latent)
    yield from _pair("experts", f.width, f.latent or hidden, f.gated, f.bias, copies=f.experts, used=f.top)
    if f.shared:
        yield from _pair("shared experts", f.shared, hidden, f.gated, f.bias)
    if f.shared_gate:
        yield Weight("shared experts", "gate", 1, hidden)
    if f.beside:
        yield from _pair("ffn", f.beside.width, hidden, f.beside.gated, f.beside.bias)


def layer_weights(layer, hidden):
    """Return the Weights of one layer as a tuple.

    >>> from cotune.model import Full, Layer
    >>> sum(w.elements for w in layer_weights(Layer(Full(32, 8, 128), None, norms=0), 4096))  # Llama-3.1-8B attention
    41943040
    """
    f, s = layer.ffn, layer.streams
    found = list(_attention_weights(layer.attention, hidden))
    if isinstance(f, MoE):
        found += _moe_weights(f, hidden)
    elif f is not None:
        found += _pair("ffn", f.width, hidden, f.gated, f.bias)
    found.append(_vector("norms", "norms", layer.norms * hidden + layer.scalars))
    if s:  # one mixing before the attention, one before the FFN: each reads all streams and sets s * (s + 2) weights
        mixings = 2
        found.append(Weight("hyper-connections", "mixing", mixings * s * (s + 2), s * hidden))
        found.append(_vector("hyper-connections", "offsets and scales", mixings * (s * (s + 2) + 3)))
    return tuple(w for w in found if w.n)


def weights(model):
    """Return every Weight of `model` with how many layers have it: a tuple of (Weight, layers).

    The head of a tied model is listed with no copies of its own: it is multiplied, not stored again.

    >>> from cotune.config import model_named
    >>> head, layers = weights(model_named("qwen3-0.6b"))[-1]  # tied
    >>> head.n * head.k, head.elements, layers
    (155582464, 0, 1)
    """
    found = [(Weight("embedding", "embedding", model.vocab, model.hidden, cut=model.vocab, matrix=False), 1)]
    for layer, many in Counter(model.layers).items():
        found += [(w, many) for w in layer_weights(layer, model.hidden)]
    found.append((_vector("norms", "last norm", model.hidden), 1))
    if model.streams:
        found.append((Weight("hyper-connections", "last mixing", model.streams, model.streams * model.hidden), 1))
        found.append((_vector("hyper-connections", "last offsets and scale", model.streams + 1), 1))
    own = 0 if model.tied else 1
    found.append((Weight("head", "head", model.vocab, model.hidden, copies=own, cut=model.vocab), 1))
    return tuple(found)


def _sum(pairs):
    """Add (part, value) pairs into a Breakdown."""
    parts = {}
    for part, value in pairs:
        parts[part] = parts.get(part, 0) + value
    return Breakdown(parts)


def parameters(model):
    """Return the Breakdown of all parameters of the text model.

    >>> from cotune.config import model_named
    >>> parameters(model_named("llama-3.1-8b")).total  # published: 8.03B
    8030261248
    >>> parameters(model_named("deepseek-v3")).total  # published: 671B
    671026419200
    """
    return _sum((w.part, w.elements * many) for w, many in weights(model) if w.copies)


def active_parameters(model, *, embedding=False):
    """Return the Breakdown of the parameters one token uses: `top` of the experts, everything else once.

    embedding : count the input embedding too. Both are published practice: a token reads one row of it, but papers
    often count it whole (Qwen3-235B's 22B does, DeepSeek-V3's 37B does not). A tied matrix is the head and counts once.

    >>> from cotune.config import model_named
    >>> m = model_named("gpt-oss-120b")
    >>> active_parameters(m).total, active_parameters(m, embedding=True).total  # published: 5.13B
    (5132849472, 5711982912)
    """
    skipped = () if embedding and not model.tied else ("embedding",)
    return _sum((w.part, w.needed(1) * many) for w, many in weights(model) if w.part not in skipped)


def weight_bytes(model, format="bf16", *, tp=1, kept=KEPT, kept_format="bf16"):
    """Return the Breakdown of weight bytes per GPU, block scales included: elements held * bytes per element.

    format : of the matrices of attention, mixers and FFNs. What is in `kept` parts, and every norm, bias and
    filter, stays in `kept_format`, as in published quantized checkpoints.

    >>> from cotune.config import model_named
    >>> weight_bytes(model_named("qwen3.5-27b")).total
    53791996928.0
    >>> weight_bytes(model_named("deepseek-v3"), "nvfp4")["experts"]  # 4 bits and an FP8 scale per 16
    367823683584.0
    """
    narrow, wide = format_named(format).bytes_per_element, format_named(kept_format).bytes_per_element
    return _sum(
        (w.part, w.held(tp) * many * (narrow if w.matrix and w.part not in kept else wide))
        for w, many in weights(model)
        if w.copies
    )


def active_weight_bytes(model, format="bf16", *, tp=1, kept=KEPT, kept_format="bf16"):
    """Return the Breakdown of weight bytes per GPU that one token reads: `top` experts, everything else once.

    The input embedding is left out (a token reads one row of it), the head of a tied model is in. Formats as in
    weight_bytes.

    >>> from cotune.config import model_named
    >>> round(active_weight_bytes(model_named("deepseek-v3")).total / 1e9, 2)  # 2 bytes for each active parameter
    73.25
    """
    narrow, wide = format_named(format).bytes_per_element, format_named(kept_format).bytes_per_element

    def one(w, many):
        return w.needed(tp) * many * (narrow if w.matrix and w.part not in kept else wide)

    return _sum((w.part, one(w, many)) for w, many in weights(model) if w.part != "embedding")


def caches(attention):
    """Return the Cache streams of one attention kind; linear and state-space layers have none.

    >>> from cotune.model import Latent
    >>> caches(Latent(heads=128, q_rank=1536, kv_rank=512, nope=128, rope=64, v_dim=128))[0].elements  # DeepSeek-V3
    576
    """
    match attention:
        case Full():
            return (Cache("full", 2 * attention.kv_heads * attention.head_dim, cut=attention.kv_heads),)
        case Window(over=a):
            return (Cache("window", 2 * a.kv_heads * a.head_dim, cut=a.kv_heads, limit=attention.size),)
        case Latent():
            return (Cache("latent", attention.kv_rank + attention.rope),)
        case Sparse():
            keys = (Cache("index keys", attention.index_dim),) if attention.index_heads else ()
            return (replace(*caches(attention.over), top=attention.top), *keys)
        case Compressed(head_dim=d, every=every):
            long = (Cache("compressed", d, every=every, top=attention.top),) if every else ()
            keys = (Cache("index keys", attention.index_dim, every=every),) if attention.top else ()
            return (Cache("window", d, limit=attention.window), *long, *keys)
    return ()


def _cached(model, value_of):
    """Sum `value_of(cache)` over all cache streams of all layers."""
    layers = Counter(layer.attention for layer in model.layers)
    return _sum((c.part, value_of(c) * many) for attention, many in layers.items() for c in caches(attention))


def kv_bytes(model, context, format="bf16", *, tp=1):
    """Return the Breakdown of KV bytes that one sequence of `context` tokens needs, per GPU.

    bytes = elements held * min(floor(context / every), limit) * bytes per element; windowed layers stop
    growing at their window. context : tokens, number or array.

    >>> from cotune.config import model_named
    >>> round(kv_bytes(model_named("kimi-k2"), 131072).total / 2**30, 6)  # GiB; 24.9 times less than MHA would need
    8.578125
    """
    context, size = positive("context", context), format_named(format).bytes_per_element

    def one(c):
        entries = np.floor(context / c.every)
        entries = np.minimum(entries, c.limit) if c.limit else entries
        return c.held(tp) * size * (float(entries) if np.ndim(entries) == 0 else entries)

    return _cached(model, one)


def kv_bytes_first_token(model, format="bf16", *, tp=1):
    """Return the Breakdown of KV bytes of the first token of a sequence, windowed layers included.

    >>> from cotune.config import model_named
    >>> kv_bytes_first_token(model_named("gpt-oss-120b")).total
    73728.0
    """
    return kv_bytes(model, 1, format, tp=tp)


def kv_bytes_per_token(model, format="bf16", *, tp=1):
    """Return the Breakdown of the long-run slope: KV bytes per further token once every window is full.

    >>> from cotune.config import model_named
    >>> kv_bytes_per_token(model_named("gpt-oss-120b")).total  # half of its first token: 18 of 36 layers have a window
    36864.0
    >>> kv_bytes_per_token(model_named("deepseek-v3")).total  # arXiv 2505.09343, Table 1: 70.272 KB
    70272.0
    """
    size = format_named(format).bytes_per_element
    return _cached(model, lambda c: 0.0 if c.limit else c.held(tp) * size / c.every)


def kv_bytes_reserved(model, context, format="bf16", *, tp=1, page=16):
    """Return the Breakdown of KV bytes an engine with unified pages reserves: every layer gets pages for every token.

    Such an engine hands out one kind of page, so a windowed layer is charged for the whole context like a full one.
    page : tokens per page; 16 is the usual size in vLLM.

    >>> from cotune.config import model_named
    >>> m = model_named("gpt-oss-120b")  # 18 of its 36 layers have a window of 128
    >>> kv_bytes_reserved(m, 8192).total / kv_bytes(m, 8192).total  # 2 * 8192 / (8192 + 128)
    1.9692307692307693
    """
    context, size = positive("context", context), format_named(format).bytes_per_element
    tokens = np.ceil(context / positive_whole("page", page)) * page
    tokens = float(tokens) if np.ndim(tokens) == 0 else tokens
    return _cached(model, lambda c: c.held(tp) * size * tokens / c.every)


def state_parts(a, tp=1):
    """Return (recurrent state, inputs kept for the convolution) in bytes of one mixer on one GPU; 0 for attention.

    >>> from cotune.model import Linear
    >>> state_parts(Linear(16, 32, 128, 128, conv=4))  # 32 * 128 * 128 * 4 bytes; (2 * 16 + 32) * 128 * 3 * 2 bytes
    (2097152, 49152)
    """
    match a:
        case Linear():
            keys, values = pieces(a.key_heads, tp) * a.key_dim, pieces(a.value_heads, tp) * a.value_dim
            state, rows = values * a.key_dim, 2 * keys + values
        case StateSpace():
            inner = pieces(a.heads, tp) * a.head_dim
            state, rows = inner * a.state, inner + 2 * pieces(a.groups, tp) * a.state
        case _:
            return 0, 0
    return state * a.state_bytes, rows * (a.conv - 1) * CONV_BYTES


def state_bytes(model, *, tp=1):
    """Return the Breakdown of the constant bytes per sequence of linear and state-space layers, whatever its length.

    Per layer: heads * head_dim * state elements, and the last conv - 1 inputs of the convolution in BF16.

    >>> from cotune.config import model_named
    >>> state_bytes(model_named("qwen3.5-35b-a3b"))["recurrent state"] / 30  # bytes in each of its 30 linear layers
    2097152.0
    """
    pairs = []
    for attention, many in Counter(layer.attention for layer in model.layers).items():
        state, rows = state_parts(attention, tp)
        pairs += [("recurrent state", state * many), ("convolution inputs", rows * many)]
    return _sum(pairs)


def padded_vocab(vocab, tp=1, *, multiple=128):
    """Return the rows of an embedding that an engine pads so every GPU gets whole tiles: ceil(V / (m tp)) m tp.

    >>> padded_vocab(151936, 8)  # Qwen3: 640 rows more than the tokenizer has
    152576
    """
    rows = positive_whole("multiple", multiple) * positive_whole("tp", tp)
    return -(-positive_whole("vocab", vocab) // rows) * rows
