"""The running case: one model of about 30 billion parameters that the course designs, lesson by lesson.

Lesson 02 starts it as a plain transformer: four GEMMs a block (gemm.linear_layers) and an output head. Its times are
those of the linear layers alone. Lesson 04 gives it a gated FFN. Lesson 06 turns it into a Model, and adds attention
and its KV cache.
"""

from dataclasses import dataclass, replace

import numpy as np

from cotune import count, gemm, layer
from cotune.chip import chip_named
from cotune.model import Dense, Full, Layer, Model


@dataclass(frozen=True)
class Draft:
    """One stage of the design: sizes, and the `format` of weights and activations (results are BF16)."""

    layers: int
    hidden: int
    ffn: int
    vocab: int
    format: str
    gated: bool = False

    @property
    def parameters(self):
        """Weights of all blocks, of the output head and of the input embedding."""
        per_block = sum(n * k for _, n, k in self.block(1).values())
        return self.layers * per_block + 2 * self.vocab * self.hidden

    def block(self, tokens, tp=1):
        """Return {name: (M, N, K)} of the four GEMMs of one block as each of `tp` GPUs holds them.

        A gated FFN-1 makes two outputs of width H', up and gate, in one GEMM. QKV and FFN-1 have N cut, the other
        two K. Raises ValueError for a size that `tp` does not divide.
        """
        whole = gemm.linear_layers(tokens, self.hidden, self.ffn)
        if self.gated:
            whole["FFN-1"] = (tokens, 2 * self.ffn, self.hidden)
        return {
            name: (m, n, gemm.shard(k, tp)) if name in ("attention output", "FFN-2") else (m, gemm.shard(n, tp), k)
            for name, (m, n, k) in whole.items()
        }


FIRST = Draft(layers=64, hidden=6144, ffn=4 * 6144, vocab=128 * 1024, format="bf16")
GATED = replace(FIRST, ffn=8 * 6144 // 3, gated=True)  # since lesson 04; as many parameters as FIRST
RUNGS = (3072, 4096, 6144, 8192, 12288)  # widths at which `rung` has whole layers


def rung(hidden, format="bf16"):
    """Return GATED at another width: L = 64 (6144 / H)^2 layers and H' = 8 H / 3, up to a multiple of 256.

    The blocks keep their weights, up to that rounding; embedding and head grow with H.

    >>> [rung(hidden).layers for hidden in RUNGS]
    [256, 144, 64, 36, 16]
    """
    layers, rest = divmod(GATED.layers * GATED.hidden**2, hidden**2)
    if rest:
        raise ValueError(f"hidden must leave whole layers, such as one of {RUNGS}, got {hidden!r}")
    return replace(GATED, layers=layers, hidden=hidden, ffn=int(gemm.padded(8 * hidden / 3, 256)), format=format)


def operands(format):
    """Return the formats of one GEMM: weights and activations in `format`, the result in BF16."""
    return {"a": format, "b": format, "c": "bf16"}


def step_kernels(draft, chip, tokens):
    """Return (how many, ideal roofline.Time) of each linear layer of one decode step of `tokens` requests."""
    formats = operands(draft.format)
    found = [(draft.layers, gemm.time(m, n, k, chip, **formats)) for m, n, k in draft.block(tokens).values()]
    return [*found, (1, gemm.time(tokens, draft.vocab, draft.hidden, chip, **formats))]


def step_time(draft, chip, tokens):
    """Return the ideal time in seconds of the linear layers of one decode step of `tokens` requests.

    Times of kernels add: layers * sum of the four GEMMs, plus the output head.
    """
    return sum(many * time.total for many, time in step_kernels(draft, chip, tokens))


def used_share(draft, chip, tokens):
    """Return the share of the chip's peak that such a step uses: time of the maths over time of the step."""
    maths = sum(many * time.math for many, time in step_kernels(draft, chip, tokens))
    return maths / step_time(draft, chip, tokens)


def rates(draft, chip, tokens):
    """Return (tokens/s per user, tokens/s per GPU) of decode with `tokens` requests on one GPU."""
    time = step_time(draft, chip, tokens)
    return 1 / time, tokens / time


def calibrated_step_time(draft, chip, tokens, tp=1, *, kept=0):
    """Return the calibrated time in seconds of the linear layers of one step of `tokens`, cut over `tp` GPUs.

    kept : so many blocks stay in BF16; the output head always does, as in published checkpoints. Times of kernels add.
    What the GPUs say to each other is left out, and so is what fusing kernels would save.
    """
    if not 0 <= kept <= draft.layers:
        raise ValueError(f"kept must be from 0 to the {draft.layers} blocks of the draft, got {kept}")

    def block(kernel):
        return sum(gemm.calibrated(*size, chip, kernel).total for size in draft.block(tokens, tp).values())

    head = gemm.calibrated(tokens, gemm.shard(draft.vocab, tp), draft.hidden, chip, "bf16").total
    wide = kept * block("bf16") if kept else 0
    return (draft.layers - kept) * block(draft.format) + wide + head


def calibrated_rates(draft, chip, tokens, tp=1):
    """Return (tokens/s per user, tokens/s per GPU) of decode with `tokens` requests on `tp` GPUs, calibrated."""
    time = calibrated_step_time(draft, chip, tokens, tp)
    return 1 / time, tokens / time / tp


HEAD_DIM = 128


def as_model(draft, kv_heads):
    """Return the draft as a Model with heads of 128 and this many KV heads; all of them is multi-head attention."""
    heads = draft.hidden // HEAD_DIM
    block = Layer(Full(heads, kv_heads, HEAD_DIM), Dense(draft.ffn, gated=draft.gated))
    return Model("running case", draft.hidden, draft.vocab, tied=False, layers=(block,) * draft.layers)


def decode_rates(model, chip, batch, context):
    """Return (tokens/s per user, tokens/s per GPU) of decode in BF16 with attention, on one GPU.

    Every request has `context` tokens in its cache; batch may be an array. Times of kernels add.
    """
    one = layer.time(layer.kernels(model.layers[0], model.hidden, 1, context - 1, batch=batch), chip).total
    time = len(model.layers) * one + layer.time([layer.head_kernel(model, batch)], chip).total
    return 1 / time, batch / time


def most_requests(model, chip, context):
    """Return how many requests of `context` tokens fit beside the BF16 weights on one chip: floor((C - W) / KV)."""
    room = chip_named(chip).capacity - count.weight_bytes(model).total
    return int(np.floor(room / count.kv_bytes(model, context).total))
