"""Figures and scenes of lesson 05. They draw and say what cotune computes; no formula stands here."""

from dataclasses import replace
from functools import cache

import numpy as np

from cotune import gemm, layer, silicon
from cotune.chip import chip_named
from cotune.count import KEPT
from cotune.formats import FORMATS, format_named, multiply_unit
from cotune.model import MoE
from cotune.teach import quantizing
from cotune.teach.explorer import choice, slider
from cotune.teach.figures.parts import (
    TITLE,
    axes,
    captions,
    guess_marks,
    how_far,
    log_ticks,
    many,
    model_choice,
    move_marks,
    named_model,
    title_of,
    tokens_short,
)
from cotune.teach.prose import number
from cotune.teach.running_case import GATED, calibrated_rates
from cotune.teach.svg import BLUE, GREEN, INK, MUTE, ORANGE, PAPER, PURPLE
from cotune.units import MEGA, MILLI

NARROW = ("mxfp8", "mxfp4", "nvfp4")


class Bits:
    """The picture of the lesson: bits of one element and its share of the block scale, in five formats."""

    shown = ("bf16", "fp8", "mxfp8", "nvfp4", "mxfp4")

    def setup(self, fig):
        ax = axes(fig, [0.14, 0.19, 0.82, 0.76], xlim=(0, 17.5), ylim=(len(self.shown) - 0.5, -0.6))
        ax.set(xlabel="bits per element", yticks=range(len(self.shown)))
        ax.set_yticklabels([format_named(f).title for f in self.shown])
        ax.grid(axis="y", visible=False)
        for row, name in enumerate(self.shown):
            f = format_named(name)
            ax.barh([row], [f.element_bits], height=0.6, color=BLUE)
            ax.barh([row], [f.bits_per_element - f.element_bits], left=f.element_bits, height=0.6, color=ORANGE)
            scale = f", a scale for {f.block}" if f.scale_bits else ""
            inside = f.element_bits > 12
            ax.text(
                f.element_bits - 0.3 if inside else f.bits_per_element + 0.3,
                row,
                f"{number(f.bits_per_element)}{scale}",
                color=PAPER if inside else INK,
                ha="right" if inside else "left",
                va="center",
            )

    def update(self):
        said = ", ".join(f"{format_named(f).title} {number(format_named(f).bits_per_element)}" for f in self.shown)
        return f"Bits per element, block scales included: {said}."


class OneBlock:
    """Thirty-two values on the number line, and where a format puts them, as one of them grows."""

    half = 1.15

    def setup(self, fig):
        ax = self.ax = axes(fig, [0.03, 0.2, 0.94, 0.58], xlim=(-self.half, self.half), ylim=(0, 1), yticks=[])
        ax.spines["left"].set_visible(False)
        ax.set_xlabel("value")
        ax.grid(axis="y", visible=False)
        (self.moves,) = ax.plot([0], [0], "-", color=MUTE, lw=0.8)
        (self.exact,) = ax.plot([0], [0.85], "o", color=BLUE, ms=5)
        (self.kept,) = ax.plot([0], [0.15], "|", color=ORANGE, ms=16, mew=2.5)
        ax.text(-self.half, 0.97, "values", color=BLUE, va="top")
        ax.text(-self.half, 0.03, "as stored", color=ORANGE, va="bottom")
        self.who = fig.text(0.03, 0.9, "", color=MUTE)
        self.verdict = fig.text(0.03, 0.81, "", color=INK)

    def update(self, *, format, largest):
        values = quantizing.one_block(largest)
        stored = quantizing.rounded(values, format)
        small = np.arange(values.size) != 4
        lost = int(np.sum((stored == 0) & small))
        error = quantizing.relative_error(stored[small], values[small]) * 100
        gone = np.full(small.sum(), np.nan)
        self.exact.set_data(values[small], np.full(small.sum(), 0.85))
        self.kept.set_data(stored[small], np.full(small.sum(), 0.15))
        ends = np.stack([values[small], stored[small], gone]), np.stack([gone * 0 + 0.85, gone * 0 + 0.15, gone])
        self.moves.set_data(ends[0].T.ravel(), np.stack([gone, gone, gone]).T.ravel())
        lines = np.stack([np.full(small.sum(), 0.8), np.full(small.sum(), 0.3), gone]).T.ravel()
        self.moves.set_ydata(lines)
        title = format_named(format).title
        self.who.set_text(f"{title}: {number(format_named(format).bits_per_element)} bits, largest value {largest}")
        self.verdict.set_text(f"{len(set(stored[small].tolist()))} distinct values, {lost} are zero")
        return (
            f"{title}, 32 values of which one is {largest} and the others lie within 1: the others end up on "
            f"{len(set(stored[small].tolist()))} distinct values, {lost} of 31 become zero, and they are "
            f"{number(error)} % off."
        )


class ProductError:
    """Error of a matrix product against the size of the block, for two kinds of scale."""

    blocks = (16, 32, 64, 128)
    kinds = {"nvfp4": ("E4M3", ORANGE, "^"), "mxfp4": ("E8M0", BLUE, "o")}

    def setup(self, fig):
        ax = axes(fig, xscale="log", xlim=(14, 146), ylim=(0, 25))
        ax.set(xlabel="elements that share a scale", ylabel="error of the product (%)")
        log_ticks(ax, x=self.blocks)
        self.lines = {}
        for kind, (name, colour, marker) in self.kinds.items():
            for rotation, dash in ((False, "-"), (True, "--")):
                (self.lines[kind, rotation],) = ax.plot(
                    self.blocks, self.blocks, dash, marker=marker, color=colour, ms=5, lw=1.8
                )
                self.lines[kind, rotation].set_label(name + (", rotated" if rotation else ""))
        (self.here,) = ax.plot([16], [1], "o", color=INK, markerfacecolor="none", ms=13, mew=2)
        (self.wide,) = ax.plot([14, 146], [1, 1], ":", color=GREEN, lw=2, label="MXFP8")
        self.who, self.verdict = captions(ax, 15, 23)
        ax.legend(loc="lower left", bbox_to_anchor=(0.02, 0.22), fontsize=8)

    def update(self, *, data, scale, block, rotation):
        for (kind, turned), line in self.lines.items():
            line.set_ydata([quantizing.product_error(data, kind, b, turned) * 100 for b in self.blocks])
        wide = quantizing.product_error(data, "mxfp8", None, rotation == "on") * 100
        self.wide.set_ydata([wide, wide])
        plain, turned = (quantizing.product_error(data, scale, block, r) * 100 for r in (False, True))
        chosen = turned if rotation == "on" else plain
        self.here.set_data([block], [chosen])
        name = next((f.title for f in FORMATS.values() if f.name == scale and f.block == block), "no format of its own")
        self.who.set_text(f"{quantizing.DATA[data]}: {name}")
        self.verdict.set_text(f"{number(chosen)} % off" + (", rotated" if rotation == "on" else ""))
        effect = "lowers" if turned < 0.98 * plain else "raises" if turned > 1.02 * plain else "hardly changes"
        return (
            f"Four-bit elements, scale {self.kinds[scale][0]} for every {block} ({name}), activations with "
            f"{quantizing.DATA[data]}: the product is {number(plain)} % off without a rotation, {number(turned)} % "
            f"with one, which {effect} the error; shown is {number(chosen)} %. MXFP8 is {number(wide)} % off."
        )


class SpeedUp:
    """Measured speed-up of NVFP4 by the weights of a layer, beside the nominal one and the calibrated model."""

    classes = ((0, 5), (5, 16), (16, 64), (64, 1e9))

    def setup(self, fig):
        ax = axes(fig, xscale="log", yscale="log", xlim=(0.05, 1200), ylim=(0.25, 10))
        ax.set(xlabel="weights of the layer (million)", ylabel="times faster in NVFP4")
        log_ticks(ax, x=(0.1, 1, 10, 100, 1000), y=(0.3, 0.5, 1, 2, 4, 6))
        ax.axhline(1, color=INK, lw=1)
        (self.nominal,) = ax.plot([0.05, 1200], [1, 1], "--", color=PURPLE, lw=1.8, label="peaks")
        (self.model,) = ax.plot([1], [1], "x", color=BLUE, ms=5, label="calibrated")
        (self.points,) = ax.plot([1], [1], "o", color=ORANGE, ms=5, alpha=0.75, label="measured")
        self.who, self.verdict = captions(ax, 0.06, 8)
        ax.legend(loc="lower right", fontsize=8)

    @classmethod
    def rows(cls, chip, over, tokens):
        """Weights in million, measured and calibrated speed-up of every measured layer with that many tokens."""
        table, ratio = silicon.speedups(chip, "nvfp4", over)
        here = table["m"] == tokens
        m, n, k = (table[size][here] for size in "mnk")
        slow, fast = (gemm.calibrated(m, n, k, chip, silicon.KERNEL_OF[d]).total for d in (over, "nvfp4"))
        return n * k / MEGA, ratio[here], slow / fast

    def update(self, *, chip, tokens, over):
        weights, measured, modelled = self.rows(chip, over, tokens)
        one = chip_named(chip)
        a, b, _ = silicon.OPERANDS[over]
        nominal = one.peak("nvfp4") / one.peak(multiply_unit(a, b))
        self.nominal.set_ydata([nominal, nominal])
        self.points.set_data(weights, measured)
        self.model.set_data(weights, modelled)
        small, large = (
            np.median(measured[(weights >= low) & (weights < high)])
            for low, high in (
                self.classes[0],
                self.classes[-1],
            )
        )
        slower = int(np.sum(measured < 1))
        self.who.set_text(f"{one.name}, {many(tokens, 'token')}, over {TITLE[over]}")
        self.verdict.set_text(f"{slower} of {len(measured)} layers get slower")
        return (
            f"{one.name}, {many(tokens, 'token')}, NVFP4 over {TITLE[over]}: the peaks say {number(nominal)} times "
            f"faster. Measured, the median layer below 5 million weights gains a factor {number(small)}, above 64 "
            f"million {number(large)}; {slower} of {len(measured)} layers get slower. The calibrated model is "
            f"{number(np.median(np.abs(modelled / measured - 1)) * 100)} % off in the median."
        )


class WholeModel:
    """Where the time of a model goes in one pass, in BF16 and in a narrower format."""

    rows = ("linear", "BF16", "attention")
    kernels = {"bf16": "bf16", "fp8": "fp8_block", "nvfp4": "nvfp4"}

    def setup(self, fig):
        ax = axes(fig, [0.25, 0.17, 0.71, 0.6], xlim=(0, 105), ylim=(2.6, -0.6))
        ax.set(xlabel="time, of the whole in BF16 (%)", yticks=range(3), yticklabels=self.rows)
        ax.grid(axis="y", visible=False)
        self.before = ax.barh(range(3), [1] * 3, height=0.74, facecolor="none", edgecolor=MUTE, lw=1.2, label="BF16")
        self.bars = ax.barh(range(3), [1] * 3, height=0.5, color=ORANGE, label="now")
        self.labels = [ax.text(1, row, "", color=INK, va="center", fontsize=8) for row in range(3)]
        self.who, self.verdict = fig.text(0.03, 0.9, "", color=MUTE), fig.text(0.03, 0.82, "", color=INK)

    @staticmethod
    @cache
    def times(model, phase, format, context, batch, chip):
        """Seconds of the rows. Prefill reads `context` tokens of each request; decode makes one token for each."""
        new, before = (context, 0) if phase == "prefill" else (1, context - 1)
        found = gemm.model_times(model, batch * new, chip, WholeModel.kernels[format], logits=batch).parts
        kept = sum(found[part] for part in found if part in KEPT)
        attention = layer.attention_time(model, chip, new, before, batch=batch, kv=format)
        return sum(found.values()) - kept, kept, attention

    def update(self, *, model, phase, format, context, batch, chip):
        m, name = named_model(model), title_of(model)
        before, now = (self.times(m, phase, f, context, batch, chip) for f in ("bf16", format))
        for old, bar, label, was, is_ in zip(self.before, self.bars, self.labels, before, now, strict=True):
            old.set_width(was / sum(before) * 100)
            bar.set_width(is_ / sum(before) * 100)
            right = max(was, is_) / sum(before) * 100
            label.set(x=right - 1 if right > 80 else right + 1, ha="right" if right > 80 else "left")
            label.set(text=f"{number(is_ / MILLI)} ms")
        faster, title = sum(before) / sum(now), TITLE[format]
        self.who.set_text(f"{name}, {phase}, {chip_named(chip).name}")
        self.verdict.set_text(f"{title}: {number(sum(now) / MILLI)} ms, {number(faster)} times faster than BF16")
        done = "reads a prompt" if phase == "prefill" else "makes a token"
        work = f"{done} for each of {many(batch, 'request')} at {tokens_short(context)}"
        return (
            f"{chip_named(chip).name}, {name} in {title} {work} in {number(sum(now) / MILLI)} ms, against "
            f"{number(sum(before) / MILLI)} ms in BF16: {number(faster)} times faster. The linear layers' speed-up is "
            f"{number(before[0] / now[0])} (calibrated), that of attention {number(before[2] / now[2])} (ideal), and "
            f"what is kept in BF16 takes {number(now[1] / sum(now) * 100)} % of what is left."
        )


class Frontier:
    """What four bits buy the running case: tokens/s per user against tokens/s per GPU, linear layers only."""

    batches = np.array([1, 4, 16, 64, 256, 512, 1024, 2048, 4096])
    looks = {"bf16": (BLUE, "-", "o"), "fp8_block": (GREEN, "--", "s"), "nvfp4": (ORANGE, "-.", "^")}

    def setup(self, fig):
        ax = axes(fig, [0.165, 0.14, 0.8, 0.82], xscale="log", yscale="log", xlim=(3, 800), ylim=(30, 3e6))
        ax.set(xlabel="tokens/s per user", ylabel="tokens/s per GPU")
        log_ticks(ax, x=(3, 10, 30, 100, 300), y=(100, 1000, 10000, 100000))
        self.lines = {}
        for kernel, (colour, dash, marker) in self.looks.items():
            (self.lines[kernel],) = ax.plot([1], [1], dash, marker=marker, color=colour, ms=4, label=TITLE[kernel])
        (self.here,) = ax.plot([1], [1], "o", color=INK, markerfacecolor="none", ms=12, mew=2)
        self.who, self.verdict = captions(ax, 3.3, 8e5)
        ax.legend(loc="lower left")

    def update(self, *, batch, format, chip):
        for kernel, line in self.lines.items():
            line.set_data(*calibrated_rates(replace(GATED, format=kernel), chip, self.batches))
        user, gpu = calibrated_rates(replace(GATED, format=format), chip, batch)
        base, _ = calibrated_rates(GATED, chip, batch)
        self.here.set_data([user], [gpu])
        self.who.set_text(f"{chip_named(chip).name}, {many(batch, 'request')}")
        self.verdict.set_text(f"{number(user)} per user, {number(gpu)} per GPU")
        return (
            f"{chip_named(chip).name}, {TITLE[format]}, {many(batch, 'request')}: {number(user)} tokens/s per user "
            f"and {number(gpu)} per GPU, {number(user / base)} times BF16. Calibrated, linear layers only."
        )


class Guess:
    """A reader's guess of what four bits buy one layer; at the end beside model and measurement."""

    m, n, k, chip = 256, 4096, 4096, "gb300"

    def __init__(self, reveal):
        self.reveal = reveal

    def setup(self, fig):
        names = ("you", "calibrated", "measured")[: 3 if self.reveal else 1]
        self.marks = guess_marks(fig, names, (0.3, 1, 3, 10), "times faster in NVFP4 than in BF16")

    @classmethod
    def answers(cls):
        """Speed-up: of the calibrated model, and measured."""
        slow, fast = (gemm.calibrated(cls.m, cls.n, cls.k, cls.chip, f).total for f in ("bf16", "nvfp4"))
        table, ratio = silicon.speedups(cls.chip, "nvfp4")
        here = np.logical_and.reduce([table[size] == getattr(cls, size) for size in "mnk"])
        return slow / fast, float(ratio[here][0])

    def update(self, *, guess):
        modelled, measured = self.answers()
        move_marks(self.marks, (guess, modelled, measured), turn=2)
        if not self.reveal:
            return f"Your guess: {number(guess)} times faster. It is kept until the end."
        return (
            f"You guessed {number(guess)}. The calibrated model says {number(modelled)}, the measurement "
            f"{number(measured)}: your guess is {how_far(guess, measured)} it."
        )


# ------------------------------------------------------------------ what the reader can move
def guess_controls():
    sizes = (0.5, 0.8, 1, 1.5, 2, 3, 4, 6)
    return [slider("guess", "Your guess", sizes, 3, lambda v: f"{v} times", keep="low_precision-guess")]


def block_controls():
    return [
        choice("format", "Format", NARROW, "nvfp4", lambda f: format_named(f).title),
        slider("largest", "Largest value", (1, 2, 4, 8, 16, 32, 64, 128), 1),
    ]


def product_controls():
    return [
        choice("data", "Activations", tuple(quantizing.DATA), "normal", quantizing.DATA.get),
        choice("scale", "Scale", tuple(ProductError.kinds), "nvfp4", lambda s: ProductError.kinds[s][0]),
        slider("block", "Block", ProductError.blocks, 16),
        choice("rotation", "Rotation", ("off", "on"), "off", live=True),
    ]


def speed_controls():
    return [
        choice("chip", "Chip", ("gb300", "gb200", "b200"), "gb300", lambda c: chip_named(c).name),
        slider("tokens", "Tokens", (1, 16, 128, 1024, 8192), 16),
        choice("over", "Compared with", ("bfloat16", "fp8_block"), "bfloat16", TITLE.get),
    ]


MODELS = ("qwen3-0.6b", "llama-3.1-8b", "qwen3-32b", "llama-3.1-405b")


def whole_controls(mine):
    """The dense models of the lesson, and the reader's own Model where it has no experts."""
    dense = not any(isinstance(x.ffn, MoE) for x in mine.layers)
    return [
        model_choice(mine, MODELS, "llama-3.1-8b", fits=dense),
        choice("phase", "Phase", ("prefill", "decode"), "decode"),
        choice("format", "Format", tuple(WholeModel.kernels), "nvfp4", TITLE.get),
        slider("context", "Context", (2048, 8192, 32768), 8192, tokens_short, live=True),
        slider("batch", "Requests", (1, 16, 64, 256), 16, live=True),
        choice("chip", "Chip", ("gb300", "gb200", "b200"), "gb300", lambda c: chip_named(c).name, live=True),
    ]


def frontier_controls():
    return [
        slider("batch", "Requests", tuple(int(b) for b in Frontier.batches), 16),
        choice("format", "Format", tuple(Frontier.looks), "nvfp4", TITLE.get),
        choice("chip", "Chip", ("gb300", "gb200", "b200"), "gb300", lambda c: chip_named(c).name, live=True),
    ]
