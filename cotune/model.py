"""What a language model is made of: a tuple of layers, each with one attention kind and one FFN kind.

Plain frozen data, no I/O and no counting. A layer may lack one of the two: Nemotron-H alternates blocks that are
only a mixer with blocks that are only an FFN.
"""

from dataclasses import dataclass, fields


def _whole(owner, names, least=1):
    """Refuse a size that is not a whole number of at least `least`."""
    for name in names:
        value = getattr(owner, name)
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ValueError(f"{type(owner).__name__}.{name} must be a whole number of at least {least}, got {value!r}")


@dataclass(frozen=True)
class Full:
    """Attention to every earlier token: MHA (kv_heads = heads), GQA (fewer) or MQA (one).

    qk_norm   : weights of the query and key norms together; 0 where there are none
    gated     : a gate as wide as the queries multiplies the output (Qwen3.5), so the Q projection is twice as wide
    sinks     : one learned logit per head that takes part in the softmax (gpt-oss)
    shared_kv : V is made from the K projection (Gemma 4); the cache still holds both
    """

    heads: int
    kv_heads: int
    head_dim: int
    qk_norm: int = 0
    qkv_bias: bool = False
    o_bias: bool = False
    gated: bool = False
    sinks: bool = False
    shared_kv: bool = False

    def __post_init__(self):
        _whole(self, ("heads", "kv_heads", "head_dim"))
        _whole(self, ("qk_norm",), least=0)
        if self.heads % self.kv_heads:
            raise ValueError(f"heads must be a multiple of kv_heads, got {self.heads} heads and {self.kv_heads}")


@dataclass(frozen=True)
class Window:
    """The attention `over`, but to the last `size` tokens only.

    chunked : the context is cut into blocks of `size` and a token sees its own block (Llama 4); the cache needs
              at most as much as a window
    """

    over: Full
    size: int
    chunked: bool = False

    def __post_init__(self):
        _whole(self, ("size",))


@dataclass(frozen=True)
class Latent:
    """Multi-head latent attention: the cache holds one vector of kv_rank + rope per token for all heads.

    q_rank : width of the query bottleneck; 0 where queries are projected directly
    nope, rope : the parts of a query or key head without and with positions; v_dim : a value head
    """

    heads: int
    q_rank: int
    kv_rank: int
    nope: int
    rope: int
    v_dim: int

    def __post_init__(self):
        _whole(self, ("heads", "kv_rank", "nope", "rope", "v_dim"))
        _whole(self, ("q_rank",), least=0)


@dataclass(frozen=True)
class Sparse:
    """Latent attention to the `top` tokens that a small indexer picks among all earlier ones (DeepSeek-V3.2, GLM-5).

    index_heads : 0 in a layer that reuses the choice of the layer before it
    """

    over: Latent
    top: int
    index_heads: int
    index_dim: int

    def __post_init__(self):
        _whole(self, ("top", "index_dim"))
        _whole(self, ("index_heads",), least=0)
        if not self.over.q_rank:
            raise ValueError("q_rank must be at least 1: the indexer reads the query bottleneck")


@dataclass(frozen=True)
class Compressed:
    """One shared head as key and value: a window of raw entries and one entry for every `every` tokens (DeepSeek-V4).

    every : tokens per compressed entry; 0 where the layer has the window only
    top   : compressed entries an indexer picks; 0 where all are read. With an indexer adjacent groups overlap
    """

    heads: int
    head_dim: int
    q_rank: int
    o_groups: int
    o_rank: int
    window: int
    every: int = 0
    top: int = 0
    index_heads: int = 0
    index_dim: int = 0

    def __post_init__(self):
        _whole(self, ("heads", "head_dim", "q_rank", "o_groups", "o_rank", "window"))
        _whole(self, ("every", "top", "index_heads", "index_dim"), least=0)
        if self.heads % self.o_groups:
            raise ValueError(f"heads must be a multiple of o_groups, got {self.heads} heads and {self.o_groups}")


@dataclass(frozen=True)
class Linear:
    """Linear attention with a gated delta rule: a matrix of key_dim x value_dim per value head instead of a cache.

    conv : taps of the short convolution over queries, keys and values; state_bytes : bytes of one state element
    """

    key_heads: int
    value_heads: int
    key_dim: int
    value_dim: int
    conv: int
    state_bytes: int = 4

    def __post_init__(self):
        _whole(self, (f.name for f in fields(self)))
        if self.value_heads % self.key_heads:
            raise ValueError(f"value_heads must be a multiple of key_heads, got {self.value_heads}, {self.key_heads}")


@dataclass(frozen=True)
class StateSpace:
    """A Mamba-2 mixer: `heads` states of head_dim x state, with B and C shared inside each of `groups`."""

    heads: int
    head_dim: int
    groups: int
    state: int
    conv: int
    conv_bias: bool = True
    bias: bool = False
    state_bytes: int = 4

    def __post_init__(self):
        _whole(self, ("heads", "head_dim", "groups", "state", "conv", "state_bytes"))
        if self.heads % self.groups:
            raise ValueError(f"heads must be a multiple of groups, got {self.heads} heads and {self.groups} groups")


@dataclass(frozen=True)
class Dense:
    """A feed-forward layer of `width`: up and down, and a gate beside up where `gated` (SwiGLU)."""

    width: int
    gated: bool = True
    bias: bool = False

    def __post_init__(self):
        _whole(self, ("width",))


@dataclass(frozen=True)
class MoE:
    """`experts` feed-forward layers of `width`, of which a router gives each token the best `top`.

    shared         : width of all shared experts together, which every token uses; shared_gate : a scalar gate on them
    latent         : width the routed experts read and write where it is not the hidden size (Nemotron 3 Ultra); else 0
    selection_bias : one learned offset per expert that only steers the choice
    hashed         : experts are looked up by token, so the scores only weigh them (DeepSeek-V4's first layers)
    router_scales  : a scale per hidden channel and per expert (Gemma 4)
    beside         : a dense layer that runs beside the experts (Gemma 4)
    """

    experts: int
    top: int
    width: int
    gated: bool = True
    bias: bool = False
    shared: int = 0
    shared_gate: bool = False
    latent: int = 0
    router_bias: bool = False
    selection_bias: bool = False
    hashed: bool = False
    router_scales: bool = False
    beside: Dense | None = None

    def __post_init__(self):
        _whole(self, ("experts", "top", "width"))
        _whole(self, ("shared", "latent"), least=0)
        if self.top > self.experts:
            raise ValueError(f"top must be at most the number of experts, got {self.top} of {self.experts}")


Attention = Full | Window | Latent | Sparse | Compressed | Linear | StateSpace
FFN = Dense | MoE


@dataclass(frozen=True)
class Layer:
    """One layer: an attention (or mixer) and an FFN, either of which may be None.

    norms   : weight vectors as long as the hidden size; scalars : single learned numbers
    streams : parallel residual streams mixed by hyper-connections (DeepSeek-V4); 0 for the plain residual
    """

    attention: Attention | None
    ffn: FFN | None
    norms: int = 2
    scalars: int = 0
    streams: int = 0

    def __post_init__(self):
        _whole(self, ("norms", "scalars", "streams"), least=0)
        if self.attention is None and self.ffn is None:
            raise ValueError("a layer must have an attention or an ffn, got neither")


@dataclass(frozen=True)
class Model:
    """A language model: its layers between an input embedding and an output head.

    tied    : the head uses the embedding matrix; context : the longest context it is made for, None if not said
    streams : as in Layer; mtp : layers for multi-token prediction, which no count here includes
    quantized : the format its checkpoint is stored in, as its config names it; "" if not said. No count here uses it
    """

    name: str
    hidden: int
    vocab: int
    tied: bool
    layers: tuple[Layer, ...]
    family: str = ""
    context: int | None = None
    streams: int = 0
    mtp: int = 0
    quantized: str = ""

    def __post_init__(self):
        _whole(self, ("hidden", "vocab"))
        _whole(self, ("streams", "mtp"), least=0)
        if not isinstance(self.layers, tuple) or not self.layers or not all(isinstance(x, Layer) for x in self.layers):
            raise ValueError("layers must be a tuple of at least one Layer")


def in_words(part):
    """Return an attention or FFN kind as a short phrase.

    >>> in_words(Full(heads=32, kv_heads=8, head_dim=128)), in_words(MoE(256, 8, 2048, shared=2048))
    ('full attention, 32 heads on 8 KV heads of 128', '8 of 256 experts of 2048 and 2048 shared')
    """
    match part:
        case Full(heads=heads, kv_heads=kv_heads, head_dim=dim):
            return f"full attention, {heads} heads on {kv_heads} KV heads of {dim}"
        case Window(over=over, size=size, chunked=chunked):
            return in_words(over).replace("full attention", f"{'blocks' if chunked else 'window'} of {size}")
        case Latent(heads=heads, kv_rank=rank, rope=rope):
            return f"latent attention, {heads} heads on one latent of {rank} + {rope}"
        case Sparse(over=over, top=top, index_heads=own):
            return f"sparse {in_words(over)}, best {top} tokens" + ("" if own else " of the layer before")
        case Compressed(heads=heads, head_dim=dim, window=window, every=every, top=top):
            entries = f" and one entry per {every} tokens" if every else ""
            return f"window of {window}{entries}{f', best {top}' if top else ''}, {heads} heads on one of {dim}"
        case Linear(value_heads=heads, key_dim=keys, value_dim=values):
            return f"linear attention, {heads} states of {keys} x {values}"
        case StateSpace(heads=heads, head_dim=dim, state=state):
            return f"state space, {heads} states of {dim} x {state}"
        case Dense(width=width):
            return f"dense FFN of {width}"
        case MoE(experts=experts, top=top, width=width, shared=shared, beside=beside):
            extra = f" and {shared} shared" if shared else f" beside a {in_words(beside)}" if beside else ""
            return f"{top} of {experts} experts of {width}{extra}{', looked up by token' if part.hashed else ''}"
    raise ValueError(f"unknown part {part!r}; known: the attention and FFN kinds of cotune.model")
