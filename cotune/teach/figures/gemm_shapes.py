"""Figures and scenes of lesson 03. They draw and say what cotune computes; no formula stands here."""

from dataclasses import replace
from functools import cache

import numpy as np

from cotune import gemm, silicon
from cotune.calibration import validate_gemm
from cotune.chip import chip_named
from cotune.formats import format_named, multiply_unit
from cotune.parameters import KERNELS, gemm_parameters
from cotune.teach.explorer import choice, slider
from cotune.teach.figures.parts import TITLE, axes, captions, guess_marks, how_far, log_ticks, many, move_marks
from cotune.teach.prose import number
from cotune.teach.running_case import FIRST, calibrated_rates
from cotune.teach.svg import BLUE, GREEN, GRID, INK, MUTE, ORANGE, PAPER, PURPLE
from cotune.units import KILO, MEGA, MICRO, TERA

DTYPE = {kernel: dtype for dtype, kernel in silicon.KERNEL_OF.items()}  # what the tables call a kernel
ARTICLE = {"k": 3072, "n": 2560}  # 80 % points on GB300 in NVFP4 with 8192 tokens: NVIDIA 2026-07-10, Figure 4
SATURATED = 6144  # where its curves become flat
OTHER = {"k": 9728, "n": 8448}  # the size that stays fixed in that figure while the other one grows


FITTED = {  # what the six numbers are: of each name, what it is and in what
    "fixed": "µs of every call",
    "peak": "share of the datasheet's peak",
    "bandwidth": "share of the datasheet's bandwidth",
    "load": "bytes an SM loads per FLOP of its BF16 peak",
    "store": "bytes it stores per such FLOP",
    "split": "µs of adding parts of K",
    "quantize": "times the ideal of quantizing",
}


def fitted_rows(chip):
    """Rows of a table: each fitted number of a chip, for every kernel of the lesson; "-" where it has none."""
    of = [gemm_parameters(chip, kernel) for kernel in KERNEL_NAMES]
    for name, meaning in FITTED.items():
        unit = MICRO if name in ("fixed", "split") else 1
        values = (getattr(p, name) for p in of)
        yield [f"{name}: {meaning}", *("-" if value is None else f"{value / unit:.3g}" for value in values)]


def error_rows(chip):
    """Rows of a table: layers, error of ideal times, and of calibrated ones: left out, worst pair, 90th, bias; in %."""
    found = {(r["format"], r["mode"]): r for r in validate_gemm(silicon.gemm_table().where(chip=chip))}
    for kernel in KERNEL_NAMES:
        ideal, fit = (found[DTYPE[kernel], mode] for mode in ("ideal", "calibrated"))
        error = gemm_parameters(chip, kernel).error
        values = ideal["mape"], error.cv_mean, error.cv_worst, fit["p90_ape"], fit["bias"]
        yield [TITLE[kernel], ideal["n"], *(f"{value:.1f}" for value in values)]


def long_bias(kernel, low, high, chip="gb300"):
    """Mean excess of calibrated over measured time in percent, of layers that took low to high s; and their number."""
    table = silicon.gemm_table().where(chip=chip, dtype=DTYPE[kernel], latency=lambda t: (t >= low) & (t < high))
    model = gemm.calibrated(table["m"], table["n"], table["k"], chip, kernel).total
    return float(np.mean(model / table["latency"] - 1) * 100), len(model)


def rate_share(m, n, k, chip, kernel):
    """Share of peak in percent that the calibrated model reaches."""
    peak = chip_named(chip).peak(multiply_unit(KERNELS[kernel].a, KERNELS[kernel].b))
    return gemm.flops(m, n, k) / gemm.calibrated(m, n, k, chip, kernel).total / peak * 100


def ideal_share(m, n, k, chip, kernel):
    """Share of peak in percent that the ideal roofline allows."""
    a, b, c = (getattr(KERNELS[kernel], operand) for operand in "abc")
    time = gemm.time(m, n, k, chip, a=a, b=b, c=c)
    return time.math / time.total * 100


class OneTile:
    """The picture of the lesson: C is cut into tiles, and what one tile needs."""

    rows, columns, k = 256, 128, 512

    def setup(self, fig):
        ax = axes(fig, [0.02, 0.02, 0.96, 0.96], xlim=(0, 11.6), ylim=(6.4, 0), xticks=[], yticks=[])
        ax.grid(visible=False)
        for side in ("left", "bottom"):
            ax.spines[side].set_visible(False)
        self.sheet(ax, 0.6, 2.2, 2.4, 4, 1, 4, "A", "M × K", (1, 0))
        self.sheet(ax, 3.6, 0.4, 6, 1.4, 6, 1, "B", "K × N", (0, 2))
        self.sheet(ax, 3.6, 2.2, 6, 4, 6, 4, "C", "M × N", (1, 2))
        ax.text(1.8, 1.9, "inputs K", color=MUTE, ha="center")
        ax.text(9.8, 1.1, "weights", color=MUTE, va="center")
        ax.text(9.8, 4.2, "one tile\nfor one SM", color=ORANGE, va="center")

    @staticmethod
    def sheet(ax, x, y, width, height, across, down, name, size, marked):
        """One matrix: its tiles, its name, and the part that one tile of C needs."""
        row, column = marked
        ax.add_patch(_box(x, y, width, height, PAPER))
        wide, high = width / across, height / down
        ax.add_patch(_box(x + column * wide, y + row * high, wide, high, ORANGE if name == "C" else BLUE))
        for i in range(1, across):
            ax.plot([x + i * wide] * 2, [y, y + height], color=MUTE, lw=0.6)
        for i in range(1, down):
            ax.plot([x, x + width], [y + i * high] * 2, color=MUTE, lw=0.6)
        ax.add_patch(_box(x, y, width, height, "none"))
        ax.text(x + width - 0.12, y + height - 0.3, f"{name}: {size}", color=INK, ha="right", va="center")

    def update(self):
        f = format_named("bf16")
        flop = gemm.flops(self.rows, self.columns, self.k)
        moved = gemm.traffic(self.rows, self.columns, self.k, a=f, b=f, c=f)
        return (
            f"One tile of {self.rows} x {self.columns} results in BF16 with K = {self.k}: its SM loads "
            f"{number(moved.read / KILO)} kB of A and B, does {number(flop / MEGA)} MFLOP, and stores "
            f"{number(moved.write_c / KILO)} kB of C."
        )


def _box(x, y, width, height, colour):
    from matplotlib.patches import Rectangle

    face = colour if colour != "none" else "none"
    return Rectangle((x, y), width, height, facecolor=face, edgecolor=INK, lw=1.2 if colour == "none" else 0.4)


class Sweep:
    """Share of peak against K or against N, other sizes fixed: ideal, calibrated, measured, and the article's mark."""

    sizes = np.arange(128, 16385, 128)

    def setup(self, fig):
        ax = self.ax = axes(fig, xscale="log", xlim=(115, 18000), ylim=(0, 100))
        ax.set(xlabel="size (elements)", ylabel="share of peak (%)")
        log_ticks(ax, x=(128, 512, 2048, 8192))
        (self.ideal,) = ax.plot(self.sizes, self.sizes, ":", color=MUTE, lw=1.8, label="ideal")
        (self.model,) = ax.plot(self.sizes, self.sizes, "-", color=BLUE, lw=2.2, label="calibrated")
        (self.points,) = ax.plot([1], [1], "o", color=ORANGE, ms=6, label="measured")
        (self.edge,) = ax.plot([1, 1], [0, 60], "--", color=BLUE, lw=1.2, label="80 % of best")
        (self.article,) = ax.plot([1, 1], [0, 60], "-.", color=PURPLE, lw=1.8, label="80 %, article")
        self.who, self.verdict = captions(ax, 130, 92)
        ax.legend(loc="lower right", bbox_to_anchor=(0.42, 0.4), fontsize=8)

    @classmethod
    @cache
    def curve(cls, vary, kernel, tokens, chip):
        """Ideal and calibrated share of peak over the sizes."""
        n, k = (OTHER["k"], cls.sizes) if vary == "k" else (cls.sizes, OTHER["n"])
        return ideal_share(tokens, n, k, chip, kernel), rate_share(tokens, n, k, chip, kernel)

    @classmethod
    def edge_of(cls, vary, kernel, tokens, chip):
        """The least size from which on the calibrated rate stays at 80 % of the best of the sweep."""
        share = cls.curve(vary, kernel, tokens, chip)[1]
        below = np.flatnonzero(share < 0.8 * share.max())
        return int(cls.sizes[below[-1] + 1]) if below.size else int(cls.sizes[0])

    @staticmethod
    def measured(vary, kernel, tokens, chip):
        """Sizes and shares of the measured layers whose other size is near the fixed one."""
        near = lambda size: (size >= 7168) & (size <= 12288)  # noqa: E731
        fixed = {"n" if vary == "k" else "k": near}
        table = silicon.gemm_table().where(chip=chip, dtype=DTYPE[kernel], m=tokens, **fixed)
        peak = chip_named(chip).peak(multiply_unit(KERNELS[kernel].a, KERNELS[kernel].b))
        share = gemm.flops(table["m"], table["n"], table["k"]) / table["latency"] / peak * 100
        return table[vary], share

    @classmethod
    def measured_edge(cls, vary, kernel="nvfp4", tokens=8192, chip="gb300"):
        """The two neighbouring measured sizes between which the best rate of each first reaches 80 % of the best."""
        sizes, shares = cls.measured(vary, kernel, tokens, chip)
        distinct = np.unique(sizes[sizes <= cls.sizes[-1]])
        best = np.array([shares[sizes == size].max() for size in distinct])
        first = int(np.argmax(best >= 0.8 * best.max()))
        return int(distinct[first - 1]), int(distinct[first])

    def update(self, *, vary, kernel, tokens, chip):
        ideal, model = self.curve(vary, kernel, tokens, chip)
        size, share = self.measured(vary, kernel, tokens, chip)
        edge = self.edge_of(vary, kernel, tokens, chip)
        announced = kernel == "nvfp4" and tokens == 8192 and chip == "gb300"
        self.ideal.set_ydata(ideal)
        self.model.set_ydata(model)
        self.points.set_data(size, share)
        self.edge.set_data([edge, edge], [0, np.interp(edge, self.sizes, model)])
        self.article.set_data([ARTICLE[vary]] * 2, [0, 60]) if announced else self.article.set_data([1, 1], [0, 1])
        name, other = vary.upper(), "N" if vary == "k" else "K"
        fixed = f"{other} = {OTHER[vary]}"
        self.who.set_text(f"{chip_named(chip).name}, {TITLE[kernel]}")
        self.verdict.set_text(f"{name} grows, {fixed}: 80 % from {edge}")
        article = f" The article marks {ARTICLE[vary]}, on NVIDIA's own silicon." if announced else ""
        return (
            f"{chip_named(chip).name}, {TITLE[kernel]}, {many(tokens, 'token')}, {fixed}: the calibrated model reaches "
            f"{number(model.max())} % of peak at best, and 80 % of that from {name} = {edge} on; ideal would be "
            f"{number(np.interp(edge, self.sizes, ideal))} % of peak there. {size.size} layers were measured nearby, "
            f"the slowest at {number(share.min())} %, the fastest at {number(share.max())} %.{article}"
        )


class Shape:
    """Time over that of a square of as many weights, as the matrix gets wide or deep."""

    aspects = (-64, -16, -4, 1, 4, 16, 64)  # N / K; a negative one is K / N
    fine = 2.0 ** np.linspace(-6, 6, 49)
    side = 4096

    def setup(self, fig):
        ax = axes(fig, xscale="log", yscale="log", xlim=(1 / 100, 100), ylim=(0.4, 6))
        ax.set(xlabel="N / K (long inputs left, wide outputs right)", ylabel="time over the square's")
        ax.set_xticks([1 / 64, 1 / 16, 1 / 4, 1, 4, 16, 64], ["1/64", "1/16", "1/4", "1", "4", "16", "64"], minor=False)
        ax.minorticks_off()
        log_ticks(ax, y=(0.5, 1, 2, 4))
        ax.axhline(1, color=GRID, lw=1.6)
        (self.ideal,) = ax.plot(self.fine, self.fine, ":", color=MUTE, lw=1.8, label="ideal")
        (self.model,) = ax.plot(self.fine, self.fine, "-", color=BLUE, lw=2.2, label="calibrated")
        (self.points,) = ax.plot([1], [1], "D", color=ORANGE, ms=7, label="measured")
        (self.here,) = ax.plot([1], [1], "o", color=INK, markerfacecolor="none", ms=14, mew=2)
        self.who, self.verdict = captions(ax, 1 / 85, 4.8)
        ax.legend(loc="lower left", fontsize=8)

    @classmethod
    @cache
    def lines(cls, kernel, tokens, chip):
        """Ideal and calibrated time over the square's, on the fine grid of N / K."""
        n, k = cls.side * np.sqrt(cls.fine), cls.side / np.sqrt(cls.fine)
        formats = {operand: getattr(KERNELS[kernel], operand) for operand in "abc"}
        ideal = gemm.time(tokens, n, k, chip, **formats).total
        model = gemm.calibrated(tokens, n, k, chip, kernel).total
        middle = cls.fine.size // 2
        return ideal / ideal[middle], model / model[middle]

    @staticmethod
    @cache
    def medians(kernel, decode, chip):
        """{N / K: (median, rows)} of measured time over the measured square, for at most 128 or at least 512 tokens."""
        few = (lambda m: m <= 128) if decode else (lambda m: m >= 512)
        ratio, shape = silicon.over_square(silicon.gemm_table().where(chip=chip, dtype=DTYPE[kernel], m=few))
        return {s: (float(np.median(ratio[shape == s])), int(np.sum(shape == s))) for s in np.unique(shape)}

    def update(self, *, kernel, tokens, aspect, chip):
        ratio = aspect if aspect > 0 else -1 / aspect
        ideal, model = self.lines(kernel, tokens, chip)
        found = self.medians(kernel, tokens <= 128, chip)
        shown = [s for s in found if any(np.isclose(s, a if a > 0 else -1 / a) for a in self.aspects)]
        place = int(np.argmin(np.abs(self.fine - ratio)))
        self.ideal.set_ydata(ideal)
        self.model.set_ydata(model)
        self.points.set_data(shown, [found[s][0] for s in shown])
        self.here.set_data([ratio], [model[place]])
        n, k = round(self.side * ratio**0.5), round(self.side / ratio**0.5)
        self.who.set_text(f"{chip_named(chip).name}, {TITLE[kernel]}, {many(tokens, 'token')}")
        self.verdict.set_text(f"N = {n}, K = {k}: {number(model[place])} times")
        measured = found.get(ratio)
        many_, group = (measured or (1, 0))[1], "at most 128" if tokens <= 128 else "at least 512"
        said = (
            f"Measured with {group} tokens, the median of {many_} pairs is {number(measured[0])}."
            if measured and aspect != 1
            else f"Measured shapes with {group} tokens stand beside it."
        )
        return (
            f"{chip_named(chip).name}, {TITLE[kernel]}, {many(tokens, 'token')}, N = {n} and K = {k}: the calibrated "
            f"model takes {number(model[place])} times as long as for a square of as many weights, the ideal "
            f"{number(ideal[place])} times. {said}"
        )


class Cut:
    """The running case cut over more and more GPUs: tokens/s per user against tokens/s per GPU."""

    batches = np.array([1, 4, 16, 64, 256, 1024, 4096])
    cuts = (1, 2, 4, 8, 16)
    looks = ((BLUE, "-", "o"), (GREEN, "--", "s"), (ORANGE, "-.", "^"), (PURPLE, ":", "D"), (MUTE, "-", "v"))

    def setup(self, fig):
        ax = axes(fig, xscale="log", yscale="log", xlim=(5, 3000), ylim=(20, 6e5))
        ax.set(xlabel="tokens/s per user", ylabel="tokens/s per GPU")
        log_ticks(ax, x=(10, 30, 100, 300, 1000), y=(100, 1000, 10000, 100000))
        self.lines = {}
        for tp, (colour, dash, marker) in zip(self.cuts, self.looks, strict=True):
            (self.lines[tp],) = ax.plot([1], [1], dash, marker=marker, color=colour, ms=4, label=f"{tp} GPUs")
        self.lines[1].set_label("1 GPU")
        (self.here,) = ax.plot([1], [1], "o", color=INK, markerfacecolor="none", ms=12, mew=2)
        self.who, self.verdict = captions(ax, 5.6, 2e5)
        ax.legend(loc="lower left", fontsize=8)

    def update(self, *, tp, batch, kernel, chip):
        draft = replace(FIRST, format=kernel)
        for gpus, line in self.lines.items():
            line.set_data(*calibrated_rates(draft, chip, self.batches, gpus))
        user, gpu = calibrated_rates(draft, chip, batch, tp)
        _, alone = calibrated_rates(draft, chip, batch)
        sizes = draft.block(batch, tp)
        smallest = min(sizes, key=lambda name: min(sizes[name][1:]))
        n, k = sizes[smallest][1:]
        self.here.set_data([user], [gpu])
        self.who.set_text(f"{chip_named(chip).name}, {TITLE[kernel]}, {many(batch, 'request')}")
        self.verdict.set_text(f"{number(user)} per user, {number(gpu)} per GPU")
        return (
            f"{chip_named(chip).name}, {TITLE[kernel]}, {many(batch, 'request')} on {tp} GPU{'s' * (tp > 1)}: "
            f"{number(user)} tokens/s per user, and {number(gpu)} per GPU, {number(gpu / alone * 100)} % of what one "
            f"GPU alone gives. The smallest side is now {min(n, k)}, in the {smallest} ({n} x {k})."
        )


class Guess:
    """A reader's guess of one layer's share of peak; at the end beside the model and the measurement."""

    m, n, k, chip, kernel = 8192, 8192, 512, "gb300", "nvfp4"

    def __init__(self, reveal):
        self.reveal = reveal

    def setup(self, fig):
        names = ("you", "calibrated", "measured")[: 3 if self.reveal else 1]
        self.marks = guess_marks(fig, names, (1, 3, 10, 30, 100), "share of peak (%)")

    @classmethod
    def answers(cls):
        """Share of peak in percent: calibrated, ideal, and measured."""
        sizes = (cls.m, cls.n, cls.k)
        row = silicon.gemm_table().where(chip=cls.chip, dtype=cls.kernel, m=cls.m, n=cls.n, k=cls.k)
        measured = gemm.flops(*sizes) / row["latency"][0] / chip_named(cls.chip).peak("nvfp4") * 100
        shares = (share(*sizes, cls.chip, cls.kernel) for share in (rate_share, ideal_share))
        return (*(float(share) for share in shares), float(measured))

    def update(self, *, guess):
        calibrated, ideal, measured = self.answers()
        move_marks(self.marks, (guess, calibrated, measured), turn=30)
        rate = number(guess / 100 * chip_named(self.chip).peak("nvfp4") / TERA)
        if not self.reveal:
            return f"Your guess: {number(guess)} % of peak, that is {rate} TFLOP/s. It is kept until the end."
        return (
            f"You guessed {number(guess)} % of peak ({rate} TFLOP/s). The calibrated model says {number(calibrated)} "
            f"%, the ideal roof {number(ideal)} %, the measurement {number(measured)} %: your guess is "
            f"{how_far(guess, measured)} the measurement."
        )


# ------------------------------------------------------------------ what the reader can move
KERNEL_NAMES = ("bf16", "fp8_block", "nvfp4")


def guess_controls():
    shares = (1, 3, 5, 10, 15, 20, 30, 40, 50, 60, 80, 100)
    return [slider("guess", "Your guess", shares, 60, lambda v: f"{v} %", keep="gemm_shapes-guess")]


def _chips():
    return choice("chip", "Chip", ("gb300", "gb200", "b200"), "gb300", lambda c: chip_named(c).name, live=True)


def sweep_controls():
    return [
        choice("vary", "What grows", ("k", "n"), "k", {"k": "K, the inputs", "n": "N, the outputs"}.get),
        choice("kernel", "Format", KERNEL_NAMES, "nvfp4", TITLE.get),
        slider("tokens", "Tokens", (256, 1024, 8192, 32768), 8192),
        _chips(),
    ]


def shape_controls():
    def shown(aspect):
        return "square" if aspect == 1 else f"N {aspect} times K" if aspect > 0 else f"K {-aspect} times N"

    return [
        slider("aspect", "Shape", Shape.aspects, -16, shown),
        slider("tokens", "Tokens", (1, 16, 128, 1024, 8192), 8192),
        choice("kernel", "Format", ("bf16", "nvfp4"), "nvfp4", TITLE.get),
        _chips(),
    ]


def cut_controls():
    batches = tuple(int(b) for b in Cut.batches)
    return [
        slider("tp", "GPUs (TP)", Cut.cuts, 1),
        slider("batch", "Requests", batches, 64),
        choice("kernel", "Format", ("bf16", "nvfp4"), "bf16", TITLE.get),
        _chips(),
    ]
