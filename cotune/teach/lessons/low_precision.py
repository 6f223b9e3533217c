"""Exercises and quiz of lesson 05. Right answers are computed here from cotune, never typed."""

from dataclasses import replace

import numpy as np

from cotune import count, gemm, layer
from cotune.config import model_named
from cotune.formats import dequantize, format_named, quantize
from cotune.teach.grade import numeric, within
from cotune.teach.quiz import Question
from cotune.teach.running_case import GATED, calibrated_step_time
from cotune.units import GIGA, MEGA

# A block of 16 values for the second warm-up: NVFP4, tensor scale 1.
BLOCK = (1.5, 0.9, -0.3, 0.2, 0.7, -1.1, 0.05, 0.4, -0.6, 1.2, -0.15, 0.8, 0.35, -0.95, 0.1, 0.55)


def stored_bytes(n, k, format="nvfp4"):
    """Bytes of an N x K matrix in a format, block scales included."""
    return n * k * format_named(format).bytes_per_element


def _matrix():
    right = stored_bytes(3584, 18944) / MEGA
    return numeric(
        "low_precision-1",
        "Size of the matrix in NVFP4",
        "MB",
        right,
        slips=(
            (right * 4 / 4.5, "You left the block scales out: 8 more bits for every 16 elements."),
            (right * 4.25 / 4.5, "That is MXFP4. NVFP4 has a scale for every 16 elements."),
        ),
    )


def _rounding():
    right = float(dequantize(quantize(np.array(BLOCK, np.float32), "nvfp4", tensor_scale=1.0))[1])
    return numeric(
        "low_precision-2",
        "What 0.9 comes back as",
        "no unit",
        right,
        slips=(
            (0.9, "That is the value itself. Which elements can be stored?"),
            (0.875, "3.5 is not an E2M1 value: above 2 the steps are 1."),
            (0.75, "3.6 lies nearer to the other neighbour."),
        ),
    )


def _slip():
    right = count.parameters(model_named("deepseek-v3"))["experts"] * format_named("nvfp4").bytes_per_element / GIGA
    return numeric(
        "low_precision-3",
        "What the tool should have printed",
        "GB",
        right,
        slips=((right * 4 / 4.5, "That is the printed value: half a byte for each weight, and no scales."),),
    )


PROMPT = 32768  # tokens of the prompt in the fourth exercise


def linear_share(model, tokens):
    """Share of a BF16 prefill on GB300 spent in the linear layers of the blocks: calibrated, attention ideal."""
    found = gemm.model_times(model, tokens, "gb300").parts
    linear = sum(found[part] for part in found if part not in count.KEPT)
    return linear / (sum(found.values()) + layer.attention_time(model, "gb300", tokens))


def _overall():
    share = linear_share(model_named("llama-3.1-70b"), PROMPT)
    return numeric(
        "low_precision-4",
        "How many times faster the whole prefill gets",
        "times",
        gemm.amdahl(share, 2.4),
        slips=(
            (2.4, "That is the linear layers alone. Attention stays as it was."),
            (share * 2.4 + 1 - share, "Times add, not rates: divide the share of the time by 2.4."),
            (1 / (1 - share), "That is the limit of an endless speed-up of the linear layers."),
        ),
    )


CUTS = (1, 2, 4, 8, 16)


def legal_cuts(size, block):
    """The cuts after which a dimension still is a whole number of blocks."""
    return [tp for tp in CUTS if size % (tp * block) == 0]


def _cut():
    size = model_named("gpt-oss-120b").layers[0].ffn.width
    right = max(legal_cuts(size, format_named("nvfp4").block))
    return numeric(
        "low_precision-5",
        "The widest tensor parallelism that NVFP4 allows",
        "GPUs",
        right,
        slips=(
            (8, "2880 / 8 = 360 is not a multiple of 16."),
            (16, "2880 / 16 = 180 is not a multiple of 16."),
            (2, "That is what MXFP4 allows, with its blocks of 32; NVFP4 has blocks of 16."),
        ),
    )


GOAL = 1.9  # times faster than BF16, in the sixth exercise
NARROW = replace(GATED, format="nvfp4")


def prefill_gain(kept):
    """How many times faster than BF16 the running case prefills 8192 tokens on GB300 with so many blocks in BF16."""
    wide, mixed = (calibrated_step_time(d, "gb300", 8192, kept=n) for d, n in ((GATED, 0), (NARROW, kept)))
    return wide / mixed


def _blocks():
    most = max(kept for kept in range(GATED.layers + 1) if prefill_gain(kept) >= GOAL)
    return within(
        "low_precision-6",
        "Blocks of the running case that stay in BF16",
        "blocks",
        most,
        most,
        below="That is fast enough, but more blocks can stay in BF16, which protects accuracy.",
        above="With so many blocks in BF16 the prefill misses the goal.",
    )


EXERCISES = {e.id: e for e in (_matrix(), _rounding(), _slip(), _overall(), _cut(), _blocks())}


def _quiz():
    return (
        Question(
            "NVFP4 has elements of 4 bits. Why does a weight take 4.5?",
            (
                ("one bit in two marks outliers", "No element is marked; all are stored alike."),
                ("8 bits of scale are shared by 16 elements", "Half a bit for each of them."),
                ("rows are padded to 128", "Padding can add to that, where a dimension does not fit."),
            ),
            1,
        ),
        Question(
            "A layer of 2048 x 2048 weights gets slower in NVFP4. What is the likely reason?",
            (
                ("its weights do not fit the cache", "They are smaller than in BF16."),
                (
                    "quantizing its activations and starting kernels take longer than the layer saves",
                    "Both cost about the same for a small layer as for a large one.",
                ),
                ("the chip multiplies FP4 slower than BF16", "Its FP4 peak is several times higher."),
            ),
            1,
        ),
        Question(
            "Looking back at lesson 03: why does NVFP4 need larger N and K than BF16 to come near its peak?",
            (
                (
                    "arithmetic got faster by more than everything around it",
                    "Loads, stores and fixed costs then hold a larger share of the time.",
                ),
                ("their tiles are larger", "Tiles are chosen per shape in either format."),
                ("block scales need long rows", "A row needs 16 elements for its first scale."),
            ),
            0,
        ),
    )


QUIZ = _quiz()
