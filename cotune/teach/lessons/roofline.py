"""Exercises and quiz of lesson 02. Right answers are computed here from cotune, never typed."""

from dataclasses import replace

import numpy as np

from cotune import gemm
from cotune.chip import chip_named
from cotune.teach.grade import choose, numeric, within
from cotune.teach.prose import number
from cotune.teach.quiz import Question
from cotune.teach.running_case import FIRST, operands, rates
from cotune.units import PETA, TERA

H100, GB300, H200 = (chip_named(name) for name in ("h100", "gb300", "h200"))


def _intensity():
    def of(c):
        return gemm.intensity(64, 4096, 4096, a="fp8", b="fp8", c=c)

    return numeric(
        "roofline-1",
        "Arithmetic intensity of the layer",
        "FLOP/B",
        of("bf16"),
        slips=(
            (of("fp8"), "The result is written in BF16, so it costs 2 bytes an element, not 1."),
            (2 * 64, "You counted the weights alone. Activations and result move too."),
        ),
    )


def _ridge():
    return numeric("roofline-2", "Ridge point of that chip", "FLOP/B", 3.2 * PETA / (5 * TERA))


def _utilisation():
    achieved = 480 * TERA
    return numeric(
        "roofline-3",
        "What the dashboard should print",
        "%",
        achieved / H100.peak("bf16") * 100,
        slips=((achieved / H100.peak("fp8") * 100, "That is still half: find the dense BF16 peak."),),
    )


def _nearly_free():
    n, k = 8192, 28672
    return numeric(
        "roofline-4",
        "Tokens at which FFN-2 of Llama-3.1-70B becomes compute-bound",
        "tokens",
        gemm.tokens_at_ridge(n, k, H100, **operands("bf16")),
        slips=(
            (
                gemm.tokens_at_ridge(1e12, 1e12, H100, **operands("bf16")),
                "That is the rule of thumb ridge * b / 2. Here activations and result are not negligible.",
            ),
        ),
    )


EXPERT_OPTIONS = (
    "chips with twice the FP4 peak",
    "chips with twice the memory bandwidth",
    "either, equally",
    "neither",
)


def _expert():
    why = dict.fromkeys(EXPERT_OPTIONS, "Count the tokens that one expert sees, and compare with the ridge.")
    why["neither"] = "The model says one of the two limits is far closer than the other."
    return choose("roofline-5", "What would speed up the expert layer", EXPERT_OPTIONS, 2, why)


def _batch():
    batches = np.arange(1, 4097)
    user, gpu = rates(replace(FIRST, format="fp8"), H200, batches)
    good = batches[(user >= 60) & (gpu >= 0.9 * gpu.max())]
    return within(
        "roofline-6",
        "Requests to decode together",
        "requests",
        int(good.min()),
        int(good.max()),
        below="The GPU gives less than 90 % of what it could: the weights are read for too few tokens.",
        above="Each user gets less than was asked for.",
    )


EXERCISES = {e.id: e for e in (_intensity(), _ridge(), _utilisation(), _nearly_free(), _expert(), _batch())}


def _quiz():
    edge = GB300.peak("bf16") / GB300.bandwidth
    gigabytes = 400e9 / 8 / 1e9
    return (
        Question(
            "What decides whether a kernel is compute-bound or memory-bound on a given chip?",
            (
                ("its FLOP", "A kernel with many FLOP can still wait for memory if it moves many bytes."),
                (
                    "its FLOP per byte, against the ridge point",
                    "Left of the ridge memory takes longer, right of it maths.",
                ),
                ("its bytes", "Many bytes do no harm if there are enough FLOP for each."),
            ),
            1,
        ),
        Question(
            f"A large BF16 layer decodes 16 tokens on a chip whose ridge is {number(edge, 4)} FLOP/B. You store its "
            "weights in half the bytes. What happens to its ideal time?",
            (
                ("it stays", "Only a compute-bound layer would not notice."),
                ("it halves, nearly", "Nearly all its bytes are weights, and bytes are what it waits for."),
                ("it falls to a quarter", "Time is proportional to the bytes, not to their square."),
            ),
            1,
        ),
        Question(
            "Looking back at units: how much can a 400 Gb/s network card carry in one direction?",
            (
                ("400 GB/s", "Gb are gigabits; a byte has eight bits."),
                (f"{number(gigabytes)} GB/s", "Divide bits by eight."),
                ("47 GB/s", "Link rates are decimal: no 1024 belongs here."),
            ),
            1,
        ),
    )


QUIZ = _quiz()
