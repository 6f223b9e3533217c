"""Exercises and quiz of lesson 04. Right answers are computed here from cotune, never typed."""

import math
from dataclasses import replace

from cotune import count, gemm
from cotune.chip import chip_named
from cotune.config import model_named
from cotune.teach.grade import Exercise, Verdict, numeric
from cotune.teach.prose import number
from cotune.teach.quiz import Question
from cotune.teach.running_case import GATED
from cotune.units import GIGA

H200 = chip_named("h200")
EXACT = 1e-6  # for whole numbers that must be met


def _tiles():
    def share(*size):
        return gemm.tile_efficiency(*size, (128, 128)) * 100

    return numeric(
        "alignment-1",
        "Tile efficiency",
        "%",
        share(300, 1000),
        slips=(
            (share(300, 1024), "You padded M alone. N is not whole tiles either."),
            (share(384, 1000), "You padded N alone. M is not whole tiles either."),
        ),
    )


def _waves():
    tiles = gemm.tiles(4096, 4352, (128, 256))
    full = tiles // H200.sm
    return numeric(
        "alignment-2",
        "Wave efficiency",
        "%",
        gemm.wave_efficiency(tiles, H200.sm) * 100,
        slips=(
            (tiles / H200.sm / full * 100, "More than all SMs cannot work: round the waves up, not down."),
            ((tiles - full * H200.sm) / H200.sm * 100, "That is the last wave alone. Count the full ones too."),
        ),
    )


def _vocabulary():
    right = count.padded_vocab(model_named("qwen3-235b-a22b").vocab, 8)
    return numeric(
        "alignment-3",
        "Rows of the table over all 8 GPUs",
        "rows",
        right,
        tolerance=EXACT,
        slips=(
            (151936, "That is about the printed value. Divide it by 8: is a GPU's part a multiple of 128?"),
            (right // 8, "That is the part of one GPU. The question asks for all 8."),
        ),
    )


def _experts():
    def extra(width):
        return (gemm.padded(width, 128) / width - 1) * 100

    width = model_named("gpt-oss-120b").layers[0].ffn.width
    part = gemm.shard(width, 8)
    return numeric(
        "alignment-4",
        "Extra weights of the experts",
        "%",
        extra(part),
        slips=(
            (extra(width), "That pads the whole expert once. Each of 8 GPUs pads its own part."),
            (
                (1 - part / gemm.padded(part, 128)) * 100,
                "That is the share of the padded part. Divide by the real one.",
            ),
        ),
    )


def _width():
    width = model_named("mimo-7b").layers[0].ffn.width
    return numeric(
        "alignment-5",
        "FFN width with padding",
        "elements",
        gemm.padded(width, 128 * 8),
        tolerance=EXACT,
        slips=(
            (width, "As a whole it is on the grid. Divide it by 8."),
            (gemm.padded(width + 1, 128), "That is the next multiple of 128. Divide it by 8."),
            (gemm.padded(width, 128 * 8) // 8, "That is the part of one GPU. The question asks for the whole width."),
        ),
    )


LOW, HIGH = 29 * GIGA, 31 * GIGA  # parameters of the open exercise
OPEN = replace(GATED, hidden=5120)


def open_widths():
    """Return the H' of the open exercise that give 29 to 31 billion parameters and stay on 128 over 8 GPUs."""
    steps = range(1024, 65537, 1024)
    return [ffn for ffn in steps if LOW <= replace(OPEN, ffn=ffn).parameters <= HIGH]


def _praise(ffn):
    part = gemm.shard(ffn, 8)
    better = "a multiple of 256, too" if part % 256 == 0 else "of 128 and no more: a wider tile leaves a rest"
    return f"Right. Each GPU holds {part:,}, {better}."


def _design():
    per_column = OPEN.layers * 3 * OPEN.hidden
    rest = replace(OPEN, ffn=1).parameters - per_column
    low, high = (math.ceil((LOW - rest) / per_column), math.floor((HIGH - rest) / per_column))
    verdicts = (
        *(Verdict(ffn, ffn, "right", _praise(ffn)) for ffn in open_widths()),
        Verdict(-math.inf, low - 1, "wrong", "Not yet. That makes less than 29 billion parameters."),
        Verdict(high + 1, math.inf, "wrong", "Not yet. That makes more than 31 billion parameters."),
        Verdict(low, high, "wrong", "Not yet. The parameters fit, but an eighth of it is no multiple of 128."),
    )
    return Exercise("alignment-6", "FFN width H' of your design", "elements", verdicts, whole=True)


EXERCISES = {e.id: e for e in (_tiles(), _waves(), _vocabulary(), _experts(), _width(), _design())}


def _quiz():
    part = gemm.shard(14336, 32)
    few, many = (number(gemm.wave_efficiency(tiles, 132) * 100) for tiles in (140, 1400))
    return (
        Question(
            "An FFN is 14,336 wide, which is 112 times 128. You cut it over 32 GPUs. What does one GPU hold?",
            (
                (
                    "a multiple of 128, as the whole is one",
                    f"14,336 / 32 = {part}, and {part} / 128 is no whole number.",
                ),
                (f"{part} columns, {number(part / 128)} times 128", "112 does not divide by 32: the grid is lost."),
                ("nothing: it cannot be cut so", f"14,336 does divide by 32; each part is {part} wide."),
            ),
            1,
        ),
        Question(
            "On 132 SMs, which layer loses the larger share of the chip to its last wave?",
            (
                ("one of 140 tiles", f"Two waves for 8 tiles more than one: {few} % filled."),
                ("one of 1,400 tiles", f"Eleven waves, of which the last is not full: {many} % filled."),
                ("both the same", "A last wave that is nearly empty matters less after many full ones."),
            ),
            0,
        ),
        Question(
            "Looking back at lesson 02: you decode 16 tokens on a large layer, far left of the ridge. Tiles have 64 "
            "rows, so three quarters of their work is thrown away. What happens if you avoid that waste?",
            (
                ("the layer takes a quarter of the time", "Only if arithmetic were what it waits for."),
                ("next to nothing", "It waits for its weights to be read; the arithmetic was free."),
                ("the layer gets slower", "Less work does not take longer."),
            ),
            1,
        ),
    )


QUIZ = _quiz()
