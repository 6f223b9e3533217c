"""Exercises and quiz of lesson 06. Right answers are computed here from cotune, never typed."""

from cotune import count, gemm, layer
from cotune.chip import chip_named
from cotune.config import model_named
from cotune.model import Dense, Full, Layer, Model
from cotune.teach.grade import numeric, within
from cotune.teach.prose import number
from cotune.teach.quiz import Question
from cotune.teach.running_case import GATED, HEAD_DIM, as_model, most_requests
from cotune.units import GIB

GB300 = chip_named("gb300")


def _cache():
    block = Layer(Full(48, 6, 128), Dense(12288))
    model = Model("small", 6144, 65536, tied=False, layers=(block,) * 36)
    right = count.kv_bytes_per_token(model).total
    return numeric(
        "anatomy-1",
        "KV bytes per token",
        "bytes",
        right,
        slips=((right * 48 / 6, "The cache holds the KV heads, not the query heads."),),
    )


def _experts():
    right = layer.distinct_experts(64, 4, 16)
    return numeric(
        "anatomy-2",
        "Distinct experts that 16 tokens reach",
        "experts",
        right,
        slips=((64, "That is the upper limit 16 times 4; some tokens choose the same experts."),),
    )


def _slip():
    right = count.kv_bytes(model_named("qwen3.5-397b-a17b"), 131072).total / GIB
    return numeric(
        "anatomy-3",
        "What the tool should have printed",
        "GiB",
        right,
        slips=((right * 4, "That is the printed value: which of the 60 layers keep a cache?"),),
    )


def _longest():
    model = model_named("gpt-oss-120b")
    slope = count.kv_bytes_per_token(model).total
    budget = 5.38 * GIB
    windows = count.kv_bytes(model, 128).total - 128 * slope
    return numeric(
        "anatomy-4",
        "Tokens that one sequence can hold",
        "tokens",
        (budget - windows) / slope,
        slips=(
            (
                budget / count.kv_bytes_first_token(model).total,
                "You let every layer grow for ever. Half of them stop at 128 tokens.",
            ),
        ),
    )


def _copies():
    model = model_named("qwen3.5-397b-a17b")
    whole = count.kv_bytes_per_token(model).total
    return numeric(
        "anatomy-5",
        "KV bytes per token, summed over the 8 GPUs",
        "bytes",
        8 * count.kv_bytes_per_token(model, tp=8).total,
        slips=((whole, "That is one copy. Can 2 KV heads be dealt out to 8 GPUs?"),),
    )


def _heads():
    heads = GATED.hidden // HEAD_DIM
    most = max(
        h for h in range(1, heads + 1) if heads % h == 0 and most_requests(as_model(GATED, h), GB300, 131072) >= 16
    )
    return within(
        "anatomy-6",
        "KV heads of the running case",
        "heads",
        most,
        most,
        below="It fits, but more heads fit too, and fewer heads cost accuracy.",
        above="Either 16 such sequences do not fit beside the weights, or the number does not divide the query heads.",
    )


EXERCISES = {e.id: e for e in (_cache(), _experts(), _slip(), _longest(), _copies(), _heads())}


def _quiz():
    model = model_named("gpt-oss-120b")
    first, slope = count.kv_bytes_first_token(model).total, count.kv_bytes_per_token(model).total
    part = gemm.shard(14336, 32)
    return (
        Question(
            "What do fewer KV heads (grouped queries) change?",
            (
                ("the number of query heads", "Each KV head serves a group of query heads; those stay."),
                ("the cache, and the bytes read from it for each token", "Both are proportional to the KV heads."),
                ("the FLOP of the scores", "Every query head still scores every token."),
            ),
            1,
        ),
        Question(
            f"gpt-oss-120b stores {number(first / 1000)} kB for the first token. Why does a long context need only "
            f"{number(slope / 1000)} kB for each further one?",
            (
                ("its cache is compressed", "No entry is stored in fewer bytes than another."),
                ("half of its layers see a window and stop growing", "They keep the last 128 tokens only."),
                ("its experts hold the rest", "Experts hold weights; they keep nothing of a sequence."),
            ),
            1,
        ),
        Question(
            "Looking back at lesson 04: an FFN of 14,336 columns is cut over 32 GPUs, and tiles are 128 wide. Which "
            "share of the tiles' columns does a GPU compute for nothing?",
            (
                ("none", "14,336 is a multiple of 128; is the part of one GPU?"),
                (f"an eighth: {part} columns take 4 tiles", f"{part} / 512 = {number(part / 512)}."),
                ("a half", "Half of the last tile is empty, and it is one of four."),
            ),
            1,
        ),
    )


QUIZ = _quiz()
