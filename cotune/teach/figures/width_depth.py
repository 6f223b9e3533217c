"""Figures and scenes of lesson 07. They draw and say what cotune computes; no formula stands here."""

import itertools

import numpy as np

from cotune import count, gemm, silicon
from cotune.chip import chip_named
from cotune.config import model_named
from cotune.parameters import gemm_parameters
from cotune.teach.explorer import choice, slider
from cotune.teach.figures.parts import (
    TITLE,
    axes,
    captions,
    format_choice,
    guess_marks,
    how_far,
    lacks,
    log_ticks,
    many,
    model_choice,
    move_marks,
    named_model,
    said_lacking,
)
from cotune.teach.prose import number
from cotune.teach.running_case import (
    GATED,
    HEAD_DIM,
    RUNGS,
    as_model,
    calibrated_rates,
    calibrated_step_time,
    rung,
    step_time,
)
from cotune.teach.svg import BLUE, GREEN, INK, MUTE, ORANGE, PAPER, PURPLE
from cotune.units import GIGA, KILO, MICRO, MILLI, TERA

KERNELS_PER_LAYER = 4  # QKV, attention output, FFN-1, FFN-2
PUBLISHED = (
    "qwen3-0.6b",
    "qwen3-30b-a3b",
    "qwen3-235b-a22b",
    "minimax-m2.5",
    "glm-5",
    "gpt-oss-120b",
    "qwen3-32b",
    "llama-3.1-70b",
    "qwen3-8b",
    "deepseek-v3",
    "llama-3.1-8b",
    "llama-3.1-405b",
)


def shape(model):
    """Width and layers of a Model."""
    return model.hidden, len(model.layers)


class Published:
    """The picture of the lesson: width over layers of published models, and of the rungs of the running case."""

    def setup(self, fig):
        rows = len(PUBLISHED)
        ax = axes(fig, [0.31, 0.13, 0.65, 0.84], xscale="log", xlim=(9, 1300), ylim=(rows + 0.6, -0.7))
        ax.set(xlabel="width over layers, H / L", yticks=range(rows + 1), yticklabels=[*PUBLISHED, "our rungs"])
        ax.grid(axis="y", visible=False)
        log_ticks(ax, x=(10, 30, 100, 300, 1000))
        for row, name in enumerate(PUBLISHED):
            hidden, layers = shape(model_named(name))
            ax.plot([hidden / layers], [row], "o", color=BLUE, ms=7)
            ax.text(hidden / layers * 1.15, row, f"{hidden} / {layers}", color=MUTE, va="center", fontsize=8)
        for hidden in RUNGS:
            ax.plot([hidden / rung(hidden).layers], [rows], "D", color=ORANGE, ms=7)

    def update(self):
        found = {name: shape(model_named(name)) for name in PUBLISHED}
        said = ", ".join(f"{name} {number(h / n)} ({h} / {n})" for name, (h, n) in found.items())
        ours = ", ".join(f"{number(h / rung(h).layers)} ({h} / {rung(h).layers})" for h in RUNGS)
        return f"Width over layers: {said}. The rungs of the running case: {ours}."


def deep_over_wide(format, chip, tokens):
    """Calibrated time of a step on the narrowest rung over that on the widest."""
    return calibrated_step_time(rung(RUNGS[0], format), chip, tokens) / calibrated_step_time(
        rung(RUNGS[-1], format), chip, tokens
    )


class Ladder:
    """Time of a step against layers, at equal weights in the blocks: calibrated, its floor, and ideal."""

    def setup(self, fig):
        ax = axes(fig, xscale="log", yscale="log", xlim=(13, 320), ylim=(0.1, 2000))
        ax.set(xlabel="layers (H from 12288 on the left to 3072)", ylabel="time of one step (ms)")
        layers = [rung(hidden).layers for hidden in RUNGS]
        log_ticks(ax, x=sorted(layers), y=(0.1, 1, 10, 100, 1000))
        (self.total,) = ax.plot(layers, layers, "-o", color=ORANGE, ms=5, lw=2, label="calibrated")
        (self.ideal,) = ax.plot(layers, layers, "--s", color=BLUE, ms=4, label="ideal")
        (self.floor,) = ax.plot(layers, layers, ":^", color=PURPLE, ms=5, lw=1.8, label="latency floor")
        self.moving = self.total, self.ideal, self.floor
        self.who, self.verdict = captions(ax, 13.8, 700)
        ax.legend(loc="upper right", frameon=True, framealpha=1, facecolor=PAPER, edgecolor=PAPER)

    def update(self, *, tokens, format, chip):
        chip = chip_named(chip)
        if lacks(self, chip, format):
            return said_lacking(chip, format)
        fixed = gemm_parameters(chip, format).fixed
        drafts = [rung(hidden, format) for hidden in RUNGS]
        total = [calibrated_step_time(d, chip, tokens) / MILLI for d in drafts]
        ideal = [step_time(d, chip, tokens) / MILLI for d in drafts]
        floor = [gemm.latency_floor(d.layers, KERNELS_PER_LAYER, fixed) / MILLI for d in drafts]
        for line, values in ((self.total, total), (self.ideal, ideal), (self.floor, floor)):
            line.set_ydata(values)
        deep, wide = 0, len(RUNGS) - 1
        ratio, share = total[deep] / total[wide], floor[deep] / total[deep] * 100
        self.verdict.set_text(f"deepest / widest: {number(ratio)}")
        return (
            f"{chip.name}, {TITLE[format]}, {many(tokens, 'token')} a step: {drafts[deep].layers} layers of "
            f"{RUNGS[deep]} take {number(total[deep])} ms, {drafts[wide].layers} layers of {RUNGS[wide]} "
            f"{number(total[wide])} ms, a factor {number(ratio)}; the ideal model says "
            f"{number(ideal[deep] / ideal[wide])}. The floor of the deep one is {number(floor[deep])} ms, "
            f"{number(share)} % of its time, that of the wide one {number(floor[wide])} ms."
        )


SPLIT_WIDTHS = (1024, 2048, 4096, 8192, 16384)
WORK = ("math", "load", "memory")
PARTS = (
    ("fixed", PURPLE, 0.76, ("fixed",)),
    ("around", GREEN, 0.56, ("quantize", "split", "store")),
    ("work", ORANGE, 0.38, ("overlapped",)),
)


def layer_parts(hidden, tokens, chip, format):
    """Seconds of one layer's four kernels by group of PARTS, and which of WORK takes longest in them."""
    times = [gemm.calibrated(*size, chip, format) for size in rung(hidden, format).block(tokens).values()]
    grouped = {name: sum(t.parts[p] for t in times for p in parts) for name, _, _, parts in PARTS}
    return grouped, max(WORK, key=lambda name: sum(getattr(t, name) for t in times))


class LayerSplit:
    """Shares of one layer's time as its width shrinks."""

    said = {"math": "maths", "load": "loads", "memory": "memory"}

    def setup(self, fig):
        rows = len(SPLIT_WIDTHS)
        ax = axes(fig, [0.15, 0.17, 0.58, 0.6], xlim=(0, 100), ylim=(rows - 0.5, -0.5))
        ax.set(xlabel="share of the layer's time (%)", yticks=range(rows), yticklabels=SPLIT_WIDTHS, ylabel="width H")
        ax.grid(axis="y", visible=False)
        self.bars = [
            ax.barh(range(rows), [1] * rows, height=height, color=colour, edgecolor=PAPER, label=name)
            for name, colour, height, _ in PARTS
        ]
        self.labels = [ax.text(103, row, "", color=INK, va="center", fontsize=8) for row in range(rows)]
        self.verdict = fig.text(0.05, 0.9, "", color=INK)
        ax.legend(
            loc="lower left", bbox_to_anchor=(-0.02, 0.99), ncols=3, fontsize=8, handlelength=1.2, columnspacing=4
        )

    def update(self, *, tokens, format, chip):
        chip, found = chip_named(chip), []
        if chip.figure(format).value is None:
            return self.empty(chip, format)
        for row, hidden in enumerate(SPLIT_WIDTHS):
            grouped, bound = layer_parts(hidden, tokens, chip, format)
            total, left = sum(grouped.values()), 0
            for bars, seconds in zip(self.bars, grouped.values(), strict=True):
                bars[row].set(x=left, width=seconds / total * 100)
                left += seconds / total * 100
            self.labels[row].set_text(f"{number(total / MICRO)} µs")
            found.append((hidden, grouped["fixed"] / total * 100, total / MICRO, self.said[bound]))
        half = gemm.floor_width(chip, format)
        self.verdict.set_text(f"{chip.name}, {TITLE[format]}: H* = {number(half, 4)}")
        said = "; ".join(f"H = {h}: {number(share)} % of {number(us)} µs ({bound})" for h, share, us, bound in found)
        return (
            f"{chip.name}, {TITLE[format]}, {many(tokens, 'token')}. Fixed share of one layer, and what its work waits "
            f"for: {said}. With few tokens fixed time and weight reads are equal at H* = {number(half, 4)}."
        )

    def empty(self, chip, format):
        for bars in self.bars:
            for bar in bars:
                bar.set_width(0)
        for label in self.labels:
            label.set_text("")
        self.verdict.set_text(f"{chip.name}: no {TITLE[format]} arithmetic")
        return said_lacking(chip, format)


TWINS = ((0.5, "width / 2"), (1, "published"), (2, "width × 2"))


def dense(model):
    """Whether a Model has the twins that the scene shows: no experts, sizes and layers that stay whole."""
    try:
        return bool([gemm.wider(gemm.fused_layers(model), factor) for factor, _ in TWINS])
    except ValueError:
        return False


class Twins:
    """A published model beside its twins of as many weights in the layers."""

    def setup(self, fig):
        ax = axes(fig, [0.29, 0.17, 0.68, 0.66], xlim=(0, 400), ylim=(2.5, -0.5))
        ax.set(xlabel="time of one step, published = 100", yticks=range(3), yticklabels=[t for _, t in TWINS])
        ax.grid(axis="y", visible=False)
        self.floors = ax.barh(range(3), [1] * 3, height=0.62, color=PURPLE, edgecolor=PAPER, label="floor")
        self.rests = ax.barh(range(3), [1] * 3, height=0.4, color=ORANGE, edgecolor=PAPER, label="the rest")
        self.labels = [ax.text(1, row, "", color=INK, va="center", fontsize=8) for row in range(3)]
        self.who = fig.text(0.05, 0.9, "", color=MUTE)
        ax.legend(loc="lower right", bbox_to_anchor=(0.9, 0), fontsize=8)

    def update(self, *, model, format, tokens, chip):
        m, found = named_model(model), []
        fixed, head = (gemm_parameters(chip, kernel).fixed for kernel in (format, "bf16"))
        for factor, _ in TWINS:
            layers = gemm.wider(gemm.fused_layers(m), factor)
            inside = sum(x.copies for x in layers if x.part != "head")
            floor = gemm.latency_floor(1, inside, fixed) + head
            found.append((floor, gemm.step_time(layers, tokens, chip, format), layers))
        base = found[1][1]
        for row, (floor, total, _) in enumerate(found):
            self.floors[row].set_width(floor / base * 100)
            self.rests[row].set(x=floor / base * 100, width=(total - floor) / base * 100)
            self.labels[row].set(x=total / base * 100 + 6, text=f"{number(total / MILLI)} ms")
        self.who.set_text(f"{m.name}, {TITLE[format]}, {many(tokens, 'token')}")
        times = ", ".join(f"{number(total / MILLI, 4)} ms" for _, total, _ in found)
        floors = ", ".join(f"{number(floor / total * 100)} %" for floor, total, _ in found)
        weights = sum(x.n * x.k * x.copies for x in found[2][2]) / sum(x.n * x.k * x.copies for x in found[1][2])
        return (
            f"{m.name} in {TITLE[format]} on {chip_named(chip).name}, {many(tokens, 'token')} a step. Half as wide, as "
            f"published, twice as wide: {times}, of which fixed {floors}. The wide twin is "
            f"{number(base / found[2][1])} times as fast; with its wider output head it multiplies "
            f"{number((weights - 1) * 100)} % more weights (linear layers only, calibrated)."
        )


class OnSilicon:
    """Measured time of a billion weights built of square layers of one size, beside both models."""

    sides = np.unique(np.round(np.logspace(9, 13, 33, base=2) / 64) * 64)
    small, large = 2048, 8192

    def setup(self, fig):
        ax = axes(fig, [0.165, 0.14, 0.8, 0.82], xscale="log", yscale="log", xlim=(450, 9500), ylim=(0.05, 4000))
        ax.set(xlabel="side of the square layers", ylabel="time of a billion weights (ms)")
        log_ticks(ax, x=(512, 1024, 2048, 4096, 8192), y=(0.1, 1, 10, 100, 1000))
        (self.ideal,) = ax.plot(self.sides, self.sides, "--", color=BLUE, lw=1.8, label="ideal")
        (self.model,) = ax.plot(self.sides, self.sides, "-", color=GREEN, lw=1.8, label="calibrated")
        (self.points,) = ax.plot([1], [1], "o", color=ORANGE, ms=6, label="measured")
        self.who, self.verdict = captions(ax, 490, 400)
        ax.legend(loc="upper left", ncols=3, fontsize=8, handlelength=1.5, columnspacing=4)

    @staticmethod
    def squares(chip, low_precision, tokens):
        """Sides and measured seconds of the square layers, and the dtype of the table."""
        dtype = ("fp8_block" if chip == "h200" else "nvfp4") if low_precision == "low" else "bfloat16"
        table = silicon.gemm_table().where(chip=chip, dtype=dtype, m=tokens)
        square = table["n"] == table["k"]
        order = np.argsort(table["n"][square])
        return table["n"][square][order], table["latency"][square][order], dtype

    def update(self, *, chip, precision, tokens):
        sides, measured, dtype = self.squares(chip, precision, tokens)
        kernel = silicon.KERNEL_OF[dtype]
        a, b, c = silicon.OPERANDS[dtype]

        def of_billion(seconds, side):
            return seconds * (GIGA / side**2) / MILLI

        all_of_it = of_billion(measured, sides)
        self.points.set_data(sides, all_of_it)
        model = gemm.calibrated(tokens, self.sides, self.sides, chip, kernel).total
        ideal = gemm.time(tokens, self.sides, self.sides, chip, a=a, b=b, c=c).total
        self.model.set_ydata(of_billion(model, self.sides))
        self.ideal.set_ydata(of_billion(ideal, self.sides))
        ratios = ratio_of_sizes(chip, precision, tokens)
        name = chip_named(chip).name
        self.who.set_text(f"{name}, {TITLE[dtype]}, {many(tokens, 'token')}")
        self.verdict.set_text(f"{self.small} against {self.large}: {number(ratios[0])}")
        return (
            f"{name}, {TITLE[dtype]}, {many(tokens, 'token')}: a billion weights in layers of {self.small} x "
            f"{self.small} take {number(ratios[0])} times as long as in layers of {self.large} x {self.large}, "
            f"measured; calibrated says {number(ratios[1])}, ideal {number(ratios[2])}. In layers of {sides[0]:.0f} "
            f"they take {number(all_of_it[0])} ms, in the largest {number(all_of_it[-1])} ms."
        )


def ratio_of_sizes(chip, precision, tokens):
    """How much longer equal weights take in small square layers than in large: measured, calibrated, ideal."""
    sides, measured, dtype = OnSilicon.squares(chip, precision, tokens)
    kernel, (a, b, c) = silicon.KERNEL_OF[dtype], silicon.OPERANDS[dtype]
    small, large = OnSilicon.small, OnSilicon.large
    copies = (large / small) ** 2
    pairs = (
        [measured[sides == side][0] for side in (small, large)],
        [gemm.calibrated(tokens, side, side, chip, kernel).total for side in (small, large)],
        [gemm.time(tokens, side, side, chip, a=a, b=b, c=c).total for side in (small, large)],
    )
    return tuple(float(copies * one / other) for one, other in pairs)


class Guess:
    """A reader's guess of what sixteen small layers cost against a large one; at the end beside model and silicon."""

    m, n, k, small, chip, format = 16, OnSilicon.large, OnSilicon.large, OnSilicon.small, "gb300", "nvfp4"

    def __init__(self, reveal):
        self.reveal = reveal

    def setup(self, fig):
        names = ("you", "calibrated", "measured")[: 3 if self.reveal else 1]
        self.marks = guess_marks(fig, names, (1, 2, 4, 8, 16), "times as long")

    @classmethod
    def answers(cls):
        """Small over large: measured, calibrated and ideal."""
        return ratio_of_sizes(cls.chip, "low", cls.m)

    def update(self, *, guess):
        measured, model, ideal = self.answers()
        move_marks(self.marks, (guess, model, measured), turn=8)
        if not self.reveal:
            return f"Your guess: {number(guess)} times as long. It is kept until the end."
        return (
            f"You guessed {number(guess)} times. Measured, the sixteen take {number(measured)} times as long, "
            f"calibrated says {number(model)}, ideal {number(ideal)}: your guess is {how_far(guess, measured)}"
            f" the measurement."
        )


class Frontier:
    """What another rung buys the running case: tokens/s per user against tokens/s per GPU."""

    batches = np.array([1, 4, 16, 64, 256, 1024, 4096])

    def setup(self, fig):
        ax = axes(fig, [0.19, 0.14, 0.77, 0.82], xscale="log", yscale="log", xlim=(2, 500), ylim=(30, 4e6))
        ax.set(xlabel="tokens/s per user", ylabel="tokens/s per GPU")
        log_ticks(ax, x=(3, 10, 30, 100, 300), y=(100, 1000, 10000, 100000))
        (self.base,) = ax.plot([1], [1], "--s", color=BLUE, ms=4, label=f"{GATED.layers} layers of {GATED.hidden}")
        (self.line,) = ax.plot([1], [1], "-o", color=ORANGE, ms=4, label="your rung")
        (self.here,) = ax.plot([1], [1], "o", color=INK, markerfacecolor="none", ms=12, mew=2)
        self.moving = self.base, self.line, self.here
        self.who, self.verdict = captions(ax, 2.2, 1.2e6)
        ax.legend(loc="lower left")

    def update(self, *, hidden, format, batch, chip):
        chip, own, base = chip_named(chip), rung(hidden, format), rung(GATED.hidden, format)
        if lacks(self, chip, format):
            return said_lacking(chip, format)
        self.line.set_data(*calibrated_rates(own, chip, self.batches))
        self.base.set_data(*calibrated_rates(base, chip, self.batches))
        user, gpu = calibrated_rates(own, chip, batch)
        self.here.set_data([user], [gpu])
        gain = (user / calibrated_rates(base, chip, batch)[0] - 1) * 100
        more = (
            f"{number(abs(gain))} % {'more' if gain > 0 else 'less'} than" if hidden != GATED.hidden else "as much as"
        )
        self.who.set_text(f"{chip.name}, {TITLE[format]}, {own.layers} layers of {hidden}")
        self.verdict.set_text(f"{number(user)} per user, {number(gpu)} per GPU")
        return (
            f"{chip.name}, {TITLE[format]}, {own.layers} layers of H = {hidden}, "
            f"{number(own.parameters / GIGA, 4)} billion parameters, {many(batch, 'request')}: {number(user)} tokens/s "
            f"per user and {number(gpu)} per GPU, {more} with "
            f"{base.layers} layers (linear layers only, calibrated)."
        )


# ------------------------------------------------------------------ tables
def rung_rows():
    """H, L, H', billions of weights in the blocks and in all, kB of cache per token with 8 KV heads and multi-head."""
    rows = []
    for hidden in RUNGS:
        draft, heads = rung(hidden), (8, hidden // HEAD_DIM)
        blocks = draft.layers * sum(n * k for _, n, k in draft.block(1).values())
        kv = [count.kv_bytes_per_token(as_model(draft, kept)).total / KILO for kept in heads]
        sizes = [f"{weights / GIGA:.2f}" for weights in (blocks, draft.parameters)]
        rows.append([f"{hidden:,}", draft.layers, f"{draft.ffn:,}", *sizes, *map(number, kv)])
    return rows


def fitted_rows():
    """Chip and format, fixed time in µs, bandwidth reached in TB/s, and the width at which a layer is half fixed."""
    rows = []
    for chip, kernel in itertools.product(("gb300", "b200", "h200"), ("bf16", "fp8", "nvfp4")):
        if chip_named(chip).figure(kernel).value is not None:
            p, width = gemm_parameters(chip, kernel), gemm.floor_width(chip, kernel)
            reached = p.bandwidth * chip_named(chip).bandwidth
            numbers = [number(p.fixed / MICRO), number(reached / TERA), number(width, 4)]
            rows.append([f"{chip_named(chip).name}, {TITLE[kernel]}", *numbers])
    return rows


FULL_TABLES = {("bf16", 1): 3.1, ("bf16", 16384): 1.03, ("nvfp4", 1): 6.2, ("nvfp4", 16384): 1.6}  # measured, GB300


def ffn_ratio(kernel, tokens):
    """Calibrated time of 64 plain FFNs of H = 1024 over that of 4 of H = 4096, on GB300: equal weights."""

    def one(hidden):
        pair = gemm.linear_layers(tokens, hidden, 4 * hidden)
        return sum(gemm.calibrated(*pair[name], "gb300", kernel).total for name in ("FFN-1", "FFN-2"))

    return 64 * one(1024) / (4 * one(4096))


def small_layers(tokens, most=5e6, least=512):
    """Median measured time of small layers on GB300 over that in BF16: {dtype: ratio}, and how many layers.

    most : weights of a layer; least : smallest N and K that count.
    """
    table = silicon.gemm_table().where(chip="gb300", m=tokens, n=lambda n: n >= least, k=lambda k: k >= least)
    table = {dtype: table.where(dtype=dtype) for dtype in ("bfloat16", "fp8", "nvfp4")}
    times = {
        dtype: {(n, k): t for n, k, t in zip(rows["n"], rows["k"], rows["latency"], strict=True) if n * k <= most}
        for dtype, rows in table.items()
    }
    base = times.pop("bfloat16")
    return {d: float(np.median([t / base[size] for size, t in found.items()])) for d, found in times.items()}, len(base)


# ------------------------------------------------------------------ what the reader can move
def guess_controls():
    ratios = (1, 1.5, 2, 3, 4, 6, 8, 12, 16)
    return [slider("guess", "Your guess", ratios, 2, lambda v: f"{v} times", keep="width_depth-guess")]


def tokens_slider(default, values=(1, 16, 64, 256, 1024, 4096), **options):
    return slider("tokens", "Tokens M", values, default, **options)


def fitted_chips(live=False):
    return choice("chip", "Chip", ("gb300", "b200", "h200"), "gb300", lambda c: chip_named(c).name, live=live)


def ladder_controls():
    return [tokens_slider(16), format_choice("nvfp4"), fitted_chips()]


def split_controls():
    return [tokens_slider(1, (1, 64, 512, 4096, 16384)), format_choice("bf16"), fitted_chips()]


def twin_controls(mine):
    """The models of the lesson, and the reader's own where it is another and has twins."""
    return [
        model_choice(mine, ("qwen3-32b", "llama-3.1-70b"), "qwen3-32b", fits=dense(mine)),
        format_choice("nvfp4"),
        tokens_slider(1, (1, 64, 1024, 4096)),
        choice("chip", "Chip", ("gb300", "b200"), "gb300", lambda c: chip_named(c).name, live=True),
    ]


def silicon_controls():
    return [
        fitted_chips(),
        choice("precision", "Precision", ("high", "low"), "low", {"high": "BF16", "low": "NVFP4, H200: FP8"}.get),
        tokens_slider(16, (1, 16, 256, 2048, 16384)),
    ]


def frontier_controls():
    return [
        slider("hidden", "Width H", RUNGS, 6144, lambda h: f"{h} (L = {rung(h).layers})"),
        format_choice("nvfp4"),
        slider("batch", "Requests", tuple(int(b) for b in Frontier.batches), 64),
        fitted_chips(live=True),
    ]
