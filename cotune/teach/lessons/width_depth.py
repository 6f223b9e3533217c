"""Exercises and quiz of lesson 07. Right answers are computed here from cotune, never typed."""

from cotune import count, gemm
from cotune.chip import chip_named
from cotune.config import model_named
from cotune.formats import format_named
from cotune.parameters import gemm_parameters
from cotune.teach.grade import choose, numeric, within
from cotune.teach.prose import number
from cotune.teach.quiz import Question
from cotune.teach.running_case import RUNGS, Draft, calibrated_rates, rung
from cotune.units import MICRO

GB300 = chip_named("gb300")


def _layers():
    def blocks(hidden):
        return Draft(layers=1, hidden=hidden, ffn=4 * hidden, vocab=1, format="bf16").parameters - 2 * hidden

    deep, ratio = 72, blocks(6144) / blocks(4096)
    return numeric(
        "width_depth-1",
        "Layers of the wider model",
        "layers",
        deep / ratio,
        slips=(
            (deep * 4096 / 6144, "That keeps L H equal. A layer's weights grow with the square of H."),
            (deep * ratio, "Wider layers hold more weights, so fewer of them are needed."),
        ),
    )


def _floor():
    right = 1 / gemm.latency_floor(80, 6, 4 * MICRO)
    return numeric(
        "width_depth-2",
        "Most tokens/s that one user can get",
        "tokens/s",
        right,
        slips=(
            (right * 6, "Each of the six kernels of a layer has its own fixed time."),
            (1e6 * right**-1, "That is the time of a token in µs. The question asks for tokens a second."),
        ),
    )


def read_time(model, format):
    """The ideal time in seconds of reading all weights of a model once, every one in the same format."""
    weights = count.parameters(model).total
    return weights * format_named(format).bytes_per_element / GB300.bandwidth


def _slip():
    model = model_named("qwen3-0.6b")
    kernels = 4 * len(model.layers) + 1
    floor = gemm.latency_floor(kernels, 1, 4 * MICRO)
    slip = read_time(model, "nvfp4")
    return numeric(
        "width_depth-3",
        "Least time that its kernels take",
        "µs",
        floor / MICRO,
        tolerance=0.015,
        slips=(
            (slip / MICRO, "That is what the tool printed: bytes over bandwidth."),
            (floor / MICRO / 4, "Each layer has four of these kernels, not one."),
        ),
    )


def twin_gain(name, chip, format, tokens=1):
    """How many times as fast the twin of twice the width and a quarter of the layers makes a step."""
    layers = gemm.fused_layers(model_named(name))
    return gemm.step_time(layers, tokens, chip, format) / gemm.step_time(gemm.wider(layers, 2), tokens, chip, format)


def _twin():
    right = twin_gain("llama-3.1-8b", GB300, "nvfp4")
    return numeric(
        "width_depth-4",
        "How many times as fast the wide twin decodes",
        "times",
        right,
        tolerance=0.1,  # what the floor and the weights alone give by hand is near enough
        slips=((twin_gain("llama-3.1-8b", GB300, "bf16"), "That is the gain in BF16. The question is about NVFP4."),),
    )


SMALL_OPTIONS = (
    "weights in FP8, the published shape",
    "weights in NVFP4, the published shape",
    "BF16, twice the width and a quarter of the layers",
    "a chip with twice the memory bandwidth, the published shape in BF16",
)


def small_times():
    """Seconds of one step of Qwen3-0.6B for one user on GB300, for each of SMALL_OPTIONS in their order."""
    layers = gemm.fused_layers(model_named("qwen3-0.6b"))
    found = [gemm.step_time(layers, 1, GB300, format) for format in ("fp8", "nvfp4")]
    found.append(gemm.step_time(gemm.wider(layers, 2), 1, GB300, "bf16"))
    floor = gemm.latency_floor(sum(x.copies for x in layers), 1, gemm_parameters(GB300, "bf16").fixed)
    return [*found, floor + (gemm.step_time(layers, 1, GB300, "bf16") - floor) / 2]  # at best: all but the floor halves


def _small():
    times = small_times()
    right = times.index(min(times)) + 1
    why = {
        SMALL_OPTIONS[0]: "Its kernels have a larger fixed time, and this model's layers are mostly fixed time.",
        SMALL_OPTIONS[1]: "Fewer bytes, but each of the small kernels has a larger fixed time and quantizes first.",
        SMALL_OPTIONS[2]: "",
        SMALL_OPTIONS[3]: "Nearly half of its time is fixed, and bandwidth leaves that alone.",
    }
    return choose("width_depth-5", "What makes one user's tokens fastest", SMALL_OPTIONS, right, why)


GOAL, LEAST_LAYERS, USERS = 240, 32, 64


def _rung():
    good = [
        draft.layers
        for draft in (rung(hidden, "nvfp4") for hidden in RUNGS)
        if draft.layers >= LEAST_LAYERS and calibrated_rates(draft, GB300, USERS)[0] >= GOAL
    ]
    return within(
        "width_depth-6",
        "Layers of the running case",
        "layers",
        min(good),
        max(good),
        below="That is fewer layers than the band allows, or no rung of the ladder.",
        above="Each user gets fewer tokens a second than was asked for, or it is no rung of the ladder.",
    )


EXERCISES = {e.id: e for e in (_layers(), _floor(), _slip(), _twin(), _small(), _rung())}


def _quiz():
    half = {f: number(gemm.floor_width(GB300, f)) for f in ("bf16", "nvfp4")}
    return (
        Question(
            f"On GB300 a layer's fixed time and its weight reads are equal at H = {half['bf16']} in BF16, and at "
            f"{half['nvfp4']} in NVFP4. Why later in NVFP4?",
            (
                ("its arithmetic is slower", "It is six times as fast on paper, and decode does not wait for it."),
                (
                    "the fixed time is larger, and there are fewer bytes to hide it behind",
                    "Both move the balance the same way.",
                ),
                ("its layers have more kernels", "They have the same four."),
            ),
            1,
        ),
        Question(
            "A prefill step has 16,384 tokens. In BF16 a deep model takes hardly longer than its wide twin. Why?",
            (
                ("a long step has no fixed time", "It has the same; it is small beside the maths."),
                ("deep models read fewer weights", "Equal weights are equal bytes."),
                ("maths takes far longer than the fixed time of a kernel", "The floor is still there, and hidden."),
            ),
            2,
        ),
        Question(
            "Looking back at lesson 05: a weight in NVFP4 has 4 bits. How many bits do you have to read for it?",
            (
                (
                    f"{number(format_named('nvfp4').bytes_per_element * 8)}",
                    "16 elements share a scale of 8 bits: half a bit each.",
                ),
                ("4", "The scales of the blocks are read as well."),
                ("8", "That would be FP8."),
            ),
            0,
        ),
    )


QUIZ = _quiz()
