"""Figures and scenes of lesson 02. They draw and say what cotune computes; no formula stands here."""

from dataclasses import replace

import numpy as np

from cotune import gemm, roofline, silicon
from cotune.chip import chip_named
from cotune.formats import multiply_unit
from cotune.teach.explorer import choice, slider
from cotune.teach.figures.parts import (
    FORMATS,
    LOOK,
    TITLE,
    axes,
    captions,
    chip_choice,
    format_choice,
    guess_marks,
    how_far,
    lacks,
    log_ticks,
    many,
    move_marks,
    named,
    said_lacking,
)
from cotune.teach.prose import number
from cotune.teach.running_case import FIRST, operands, rates
from cotune.teach.svg import BLUE, GREEN, INK, MUTE, ORANGE, PAPER, PURPLE
from cotune.units import MICRO, TERA

INTENSITIES = np.logspace(0, 5, 101)


def roofline_axes(fig):
    """Arithmetic intensity against attainable TFLOP/s, both logarithmic."""
    ax = axes(
        fig,
        xscale="log",
        yscale="log",
        xlim=(1, 1e5),
        ylim=(1, 1e6),
        xlabel="arithmetic intensity (FLOP/B)",
        ylabel="attainable rate (TFLOP/s)",
    )
    log_ticks(ax, x=(1, 10, 100, 1000, 10000), y=(1, 10, 100, 1000, 10000, 100000))
    return ax


class Roofs:
    """The picture of the lesson: three roofs of one chip, and one layer in decode and in prefill."""

    chip, n, k = "gb300", 8192, 8192

    def setup(self, fig):
        ax, chip = roofline_axes(fig), chip_named(self.chip)
        self.parts = []
        for name in FORMATS:
            colour, dash, marker = LOOK[name]
            ax.plot(INTENSITIES, roofline.attainable(INTENSITIES, chip, name) / TERA, dash, color=colour, lw=2)
            for m, face in ((16, "none"), (8192, colour)):
                x = gemm.intensity(m, self.n, self.k, **operands(name))
                y = roofline.attainable(x, chip, name) / TERA
                ax.plot([x], [y], marker, color=colour, markerfacecolor=face, ms=7)
                self.parts.append((TITLE[name], m, x, y))
            edge = roofline.ridge(chip, name)
            ax.plot([edge, edge], [1, chip.peak(name) / TERA], ":", color=colour, lw=1)
            ax.text(1.05e5, chip.peak(name) / TERA, TITLE[name], color=colour, ha="right", va="bottom")
        ax.text(8, 1.6, "memory-bound", color=MUTE, ha="center")
        ax.text(2e4, 1.6, "compute-bound", color=MUTE, ha="center")
        ax.text(5, 17, f"slope: {number(chip.bandwidth / TERA)} TB/s", color=INK, rotation=36, ha="left")

    def update(self):
        chip = chip_named(self.chip)
        ridges = ", ".join(f"{number(roofline.ridge(chip, f), 4)} in {TITLE[f]}" for f in FORMATS)
        decode = ", ".join(f"{number(x)}" for _, m, x, _ in self.parts if m == 16)
        prefill = ", ".join(f"{number(x, 4)}" for _, m, x, _ in self.parts if m == 8192)
        return (
            f"{chip.name}: the ridge lies at {ridges} (FLOP/B). A layer of {self.n} x {self.k} has {decode} FLOP/B "
            f"with 16 tokens (open marks, left of every ridge: memory-bound) and {prefill} with 8192 tokens "
            "(filled marks, right of every ridge: compute-bound)."
        )


def move_roof(roof, edge_line, chip, format):
    """Draw the roof of a chip and the line down from its ridge; return its peak and its ridge point."""
    peak, edge = chip.peak(format), roofline.ridge(chip, format)
    roof.set_ydata(roofline.attainable(INTENSITIES, chip, format) / TERA)
    edge_line.set_data([edge, edge], [1, peak / TERA])
    return peak, edge


class Chips:
    """One roof against that of an H100 in BF16."""

    def setup(self, fig):
        ax = roofline_axes(fig)
        base = chip_named("h100")
        roof = roofline.attainable(INTENSITIES, base, "bf16") / TERA
        ax.plot(INTENSITIES, roof, "--", color=MUTE, lw=1.5)
        ax.text(1.05e5, base.peak("bf16") / TERA * 0.9, "H100, BF16", color=MUTE, ha="right", va="top")
        (self.roof,) = ax.plot(INTENSITIES, INTENSITIES, color=BLUE, lw=2.5)
        (self.ridge,) = ax.plot([1], [1], "D", color=ORANGE, ms=8)
        (self.drop,) = ax.plot([1, 1], [1, 1], ":", color=ORANGE, lw=1.2)
        self.moving = self.roof, self.ridge, self.drop
        self.who, self.verdict = captions(ax, 1.3, 2.6e5)

    def update(self, *, chip, format):
        chip = chip_named(chip)
        if lacks(self, chip, format):
            return said_lacking(chip, format)
        peak, edge = move_roof(self.roof, self.drop, chip, format)
        self.ridge.set_data([edge], [peak / TERA])
        self.verdict.set_text(f"ridge {number(edge, 4)} FLOP/B")
        return (
            f"{named(chip, format)}, {TITLE[format]}: {number(peak / TERA, 5)} TFLOP/s over "
            f"{number(chip.bandwidth / TERA, 4)} TB/s puts the ridge at {number(edge, 4)} FLOP/B, "
            f"{number(edge / roofline.ridge(chip_named('h100'), 'bf16'))} times that of an H100 in BF16."
        )


class LayerOnRoof:
    """FFN-2 of a transformer as a point under the roof, as tokens, width and format change."""

    def setup(self, fig):
        ax = roofline_axes(fig)
        (self.roof,) = ax.plot(INTENSITIES, INTENSITIES, color=BLUE, lw=2)
        (self.edge,) = ax.plot([1, 1], [1, 1], ":", color=BLUE, lw=1.2)
        (self.layer,) = ax.plot([1], [1], "o", color=ORANGE, ms=9)
        (self.drop,) = ax.plot([1, 1], [1, 1], "-", color=ORANGE, lw=1)
        self.moving = self.roof, self.edge, self.layer, self.drop
        self.who, self.verdict = captions(ax, 1.3, 2.6e5)

    def update(self, *, tokens, ffn, format, hidden, chip):
        chip = chip_named(chip)
        formats = operands(format)
        if lacks(self, chip, format):
            return said_lacking(chip, format)
        x = gemm.intensity(tokens, hidden, ffn, **formats)
        time = gemm.time(tokens, hidden, ffn, chip, **formats)
        peak, edge = move_roof(self.roof, self.edge, chip, format)
        y = roofline.attainable(x, chip, format)
        self.layer.set_data([x], [y / TERA])
        self.drop.set_data([x, x], [1, y / TERA])
        self.verdict.set_text(f"{time.bound}-bound, {number(y / peak * 100)} % of peak")
        return (
            f"{named(chip, format)}, FFN-2 with {many(tokens, 'token')}, H = {hidden}, H' = {ffn} in {TITLE[format]}: "
            f"{number(x, 4)} FLOP/B against a ridge of {number(edge, 4)}, so {time.bound}-bound. Maths takes "
            f"{number(time.math / MICRO)} µs, memory {number(time.memory / MICRO)} µs; at best the layer reaches "
            f"{number(y / peak * 100)} % of peak."
        )


class BatchAgainstRidge:
    """Time of FFN-1 against the number of tokens: flat while weights are read, rising once maths takes over."""

    tokens = np.unique(np.round(np.logspace(0, np.log10(16384), 120)))

    def setup(self, fig):
        ax = self.ax = axes(
            fig,
            xscale="log",
            yscale="log",
            xlim=(1, 16384),
            ylim=(1e-2, 1e4),
            xlabel="tokens M in one step",
            ylabel="time of the layer (µs)",
        )
        log_ticks(ax, x=(1, 4, 16, 64, 256, 1024, 4096), y=(0.01, 0.1, 1, 10, 100, 1000, 10000))
        (self.math,) = ax.plot(self.tokens, self.tokens, "--", color=BLUE, lw=1.6, label="maths")
        (self.memory,) = ax.plot(self.tokens, self.tokens, "-.", color=GREEN, lw=1.6, label="memory")
        (self.total,) = ax.plot(self.tokens, self.tokens, "-", color=INK, lw=2.2, alpha=0.6, label="layer")
        (self.edge,) = ax.plot([1, 1], [1e-2, 1e4], ":", color=PURPLE, lw=1.5, label="ridge")
        (self.here,) = ax.plot([1], [1], "o", color=ORANGE, ms=9)
        self.moving = self.math, self.memory, self.total, self.edge, self.here
        self.who, self.verdict = captions(ax, 1.15, 2.6e3)
        ax.legend(loc="lower right", ncols=2, frameon=True, framealpha=1, facecolor=PAPER, edgecolor=PAPER)

    def update(self, *, tokens, format, hidden, chip):
        chip, n, k = chip_named(chip), 4 * hidden, hidden
        formats = operands(format)
        if lacks(self, chip, format):
            return said_lacking(chip, format)
        curve = gemm.time(self.tokens, n, k, chip, **formats)
        here = gemm.time(tokens, n, k, chip, **formats)
        edge = gemm.tokens_at_ridge(n, k, chip, **formats)
        for line, time in ((self.math, curve.math), (self.memory, curve.memory), (self.total, curve.total)):
            line.set_ydata(time / MICRO)
        self.edge.set_xdata([edge, edge] if np.isfinite(edge) else [1e9, 1e9])
        self.here.set_data([tokens], [here.total / MICRO])
        self.verdict.set_text(f"{here.bound}-bound: {number(here.total / MICRO)} µs")
        reach = f"reaches the ridge at {number(edge, 4)} tokens" if np.isfinite(edge) else "never reaches the ridge"
        return (
            f"{named(chip, format)}, FFN-1 of H = {hidden} in {TITLE[format]}: with "
            f"{many(tokens, 'token')} the layer takes "
            f"{number(here.total / MICRO, 4)} µs, {number(here.total / tokens / MICRO)} µs a token, and is "
            f"{here.bound}-bound; it {reach}."
        )


class OnSilicon:
    """Measured GEMMs under the ideal roof, at one number of tokens."""

    low, high = 2048, 16384

    def setup(self, fig):
        ax = roofline_axes(fig)
        (self.roof,) = ax.plot(INTENSITIES, INTENSITIES, color=BLUE, lw=2)
        (self.points,) = ax.plot([1], [1], "o", color=ORANGE, ms=4.5, alpha=0.75)
        self.who, self.verdict = captions(ax, 1.3, 2.6e5)

    def rows(self, chip, low_precision, tokens):
        """The measured layers of the size large models have, and how they are stored."""
        dtype = ("fp8_block" if chip == "h200" else "nvfp4") if low_precision == "low" else "bfloat16"
        between = lambda size: (size >= self.low) & (size <= self.high)  # noqa: E731
        return silicon.gemm_table().where(chip=chip, dtype=dtype, m=tokens, n=between, k=between), dtype

    def update(self, *, chip, precision, tokens):
        table, dtype = self.rows(chip, precision, tokens)
        a, b, c = silicon.OPERANDS[dtype]
        work = gemm.work(table["m"], table["n"], table["k"], a=a, b=b, c=c)
        achieved = work.flops / table["latency"]
        share = silicon.ideal(table).total / table["latency"] * 100
        chip, unit = chip_named(chip), multiply_unit(a, b)
        self.roof.set_ydata(roofline.attainable(INTENSITIES, chip, unit) / TERA)
        self.points.set_data(work.intensity, achieved / TERA)
        self.who.set_text(f"{chip.name}, {TITLE[dtype]}, {many(tokens, 'token')}")
        self.verdict.set_text(f"median: {number(np.median(share))} % of the ideal roof")
        return (
            f"{chip.name}, {TITLE[dtype]}, {many(tokens, 'token')}: {len(table)} measured layers with "
            f"N and K from {self.low} to {self.high} reach {number(np.median(share))} % of the ideal roof in the "
            f"median, from {number(share.min())} % to {number(share.max())} %. The best one runs at "
            f"{number(achieved.max() / TERA)} of {number(chip.peak(unit) / TERA, 5)} TFLOP/s."
        )


def ordered(chip, precision, tokens):
    """Share in percent of the pairs of measured layers that the ideal time puts in the right order."""
    table, _ = OnSilicon().rows(chip, precision, tokens)
    return silicon.pairs_ordered(silicon.ideal(table).total, table["latency"]) * 100


class Distance:
    """Median share of the ideal roof against tokens, for three chips in BF16 and in low precision."""

    looks = (("gb300", ORANGE, "-", "o"), ("b200", BLUE, "--", "s"), ("h200", GREEN, "-.", "^"))
    panels = (("high", "BF16"), ("low", "NVFP4, H200: FP8"))

    def setup(self, fig):
        self.medians = {}
        for place, (precision, title) in enumerate(self.panels):
            ax = axes(fig, [0.11 + 0.48 * place, 0.16, 0.39, 0.72], xscale="log", xlim=(0.8, 45000), ylim=(0, 100))
            log_ticks(ax, x=(1, 16, 256, 4096))
            ax.set(xlabel="tokens M", title=title)
            ax.title.set_fontsize(9)
            if place == 0:
                ax.set_ylabel("share of the ideal roof (%)")
            for chip, colour, dash, marker in self.looks:
                tokens, median = self.curve(chip, precision)
                self.medians[chip, precision] = dict(zip(tokens, median, strict=True))
                ax.plot(tokens, median, dash, marker=marker, color=colour, ms=4, lw=1.6, label=chip.upper())
            ax.legend(loc="upper left", fontsize=8, handlelength=1.5)

    @staticmethod
    def curve(chip, precision):
        """Tokens, and the median share of the ideal roof in percent at each."""
        tokens, median = (1, 4, 16, 64, 256, 1024, 4096, 8192, 32768), []
        for m in tokens:
            table, _ = OnSilicon().rows(chip, precision, m)
            median.append(float(np.median(silicon.ideal(table).total / table["latency"]) * 100))
        return tokens, median

    def update(self):
        def said(precision, m):
            return ", ".join(f"{number(self.medians[c, precision][m])} % ({c.upper()})" for c, *_ in self.looks)

        return (
            f"Median share of the ideal roof that measured layers reach. BF16: {said('high', 16)} with 16 tokens, "
            f"{said('high', 8192)} with 8192. Low precision: {said('low', 16)} with 16 tokens, {said('low', 8192)} "
            "with 8192."
        )


class Guess:
    """A reader's guess of one layer's share of peak; at the end beside the model and the measurement."""

    m, n, k, chip, format = 16, 8192, 8192, "gb300", "nvfp4"

    def __init__(self, reveal):
        self.reveal = reveal

    def setup(self, fig):
        names = ("you", "ideal model", "measured")[: 3 if self.reveal else 1]
        self.marks = guess_marks(fig, names, (0.1, 0.3, 1, 3, 10, 30, 100), "share of peak (%)")

    @classmethod
    def answers(cls):
        """Share of peak in percent: of the ideal model, and measured."""
        chip, formats = chip_named(cls.chip), operands(cls.format)
        peak_time = gemm.time(cls.m, cls.n, cls.k, chip, **formats).math
        ideal = peak_time / gemm.time(cls.m, cls.n, cls.k, chip, **formats).total
        row = silicon.gemm_table().where(chip=cls.chip, dtype=cls.format, m=cls.m, n=cls.n, k=cls.k)
        return float(ideal * 100), float(peak_time / row["latency"][0] * 100)

    def update(self, *, guess):
        ideal, measured = self.answers()
        move_marks(self.marks, (guess, ideal, measured), turn=10)
        rate = number(guess / 100 * chip_named(self.chip).peak(self.format) / TERA)
        if not self.reveal:
            return f"Your guess: {number(guess)} % of peak, that is {rate} TFLOP/s. It is kept until the end."
        return (
            f"You guessed {number(guess)} % of peak ({rate} TFLOP/s). The ideal model says {number(ideal)} %, the "
            f"measurement {number(measured)} %: your guess is {how_far(guess, measured)} the measurement."
        )


class Frontier:
    """What batching to the ridge buys the running case: tokens/s per user against tokens/s per GPU."""

    batches = np.array([1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096])

    def setup(self, fig):
        ax = axes(
            fig,
            [0.19, 0.14, 0.77, 0.82],
            xscale="log",
            yscale="log",
            xlim=(3, 1000),
            ylim=(50, 5e6),
            xlabel="tokens/s per user",
            ylabel="tokens/s per GPU",
        )
        log_ticks(ax, x=(3, 10, 30, 100, 300), y=(100, 1000, 10000, 100000))
        self.lines = {}
        for name in FORMATS:
            colour, dash, marker = LOOK[name]
            (self.lines[name],) = ax.plot([1], [1], dash, marker=marker, color=colour, ms=3, label=TITLE[name])
        (self.here,) = ax.plot([1], [1], "o", color=INK, markerfacecolor="none", ms=12, mew=2)
        self.moving = (self.here,)
        self.who, self.verdict = captions(ax, 3.3, 1.6e6)
        ax.legend(loc="lower left")

    def update(self, *, batch, format, chip):
        chip = chip_named(chip)
        for name, line in self.lines.items():
            known = chip.figure(name).value is not None
            line.set_visible(known)
            if known:
                line.set_data(*rates(self.draft(name), chip, self.batches))
        if lacks(self, chip, format):
            return said_lacking(chip, format)
        user, gpu = rates(self.draft(format), chip, batch)
        alone = rates(self.draft(format), chip, 1)
        self.here.set_data([user], [gpu])
        requests = many(batch, "request")
        self.verdict.set_text(f"{requests}: {number(user)} per user, {number(gpu)} per GPU")
        return (
            f"{named(chip, format)}, {TITLE[format]}, {requests} a step: {number(user)} tokens/s per user and "
            f"{number(gpu)} tokens/s per GPU. Against one request that is {number(gpu / alone[1])} times the "
            f"throughput at {number(user / alone[0] * 100)} % of the speed (linear layers only, ideal)."
        )

    @staticmethod
    def draft(format):
        return replace(FIRST, format=format)


# ------------------------------------------------------------------ what the reader can move
TOKENS = (1, 4, 16, 64, 256, 512, 1024, 2048, 4096, 16384)
PRECISIONS = {"high": "BF16", "low": "NVFP4, or block FP8 on H200"}


def guess_controls():
    shares = (0.1, 0.3, 1, 3, 10, 30, 100)
    return [slider("guess", "Your guess", shares, 30, lambda v: f"{v} %", keep="roofline-guess")]


def layer_controls(my_hidden, my_ffn):
    """The reader's own H' joins the widths; so does the reader's own H in the live notebook."""
    return [
        slider("tokens", "Tokens M", TOKENS, 256),
        slider("ffn", "Width H'", sorted({512, 2048, 8192, my_ffn}), 512),
        format_choice("nvfp4"),
        slider("hidden", "Width H", sorted({2048, 4096, 8192, 16384, my_hidden}), 8192, live=True),
        chip_choice(live=True),
    ]


def batch_controls(my_hidden):
    """The reader's own H joins the widths."""
    return [
        slider("tokens", "Tokens M", TOKENS, 16),
        format_choice("bf16"),
        slider("hidden", "Width H", sorted({2048, 4096, 8192, my_hidden}), 8192),
        chip_choice(live=True),
    ]


def chip_controls():
    return [chip_choice(live=False), format_choice("nvfp4")]


def silicon_controls():
    return [
        choice("chip", "Chip", ("gb300", "b200", "h200"), "gb300", lambda c: chip_named(c).name),
        choice("precision", "Precision", tuple(PRECISIONS), "high", PRECISIONS.get),
        slider("tokens", "Tokens M", (1, 4, 16, 64, 256, 1024, 4096, 8192, 32768), 16),
    ]


def frontier_controls():
    batches = tuple(int(b) for b in Frontier.batches)
    served = choice("chip", "Chip", ("gb300", "h200", "h100"), "gb300", lambda c: chip_named(c).name)
    return [slider("batch", "Requests", batches, 1), format_choice("bf16"), served]
