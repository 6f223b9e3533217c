"""Figures and scenes of lesson 04. They draw and say what cotune computes; no formula stands here."""

from dataclasses import replace
from functools import cache

import numpy as np

from cotune import gemm, silicon
from cotune.chip import chip_named
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
)
from cotune.teach.prose import number
from cotune.teach.running_case import GATED, calibrated_rates, calibrated_step_time
from cotune.teach.svg import BLUE, GREEN, GRID, INK, MUTE, ORANGE, PAPER, PURPLE
from cotune.units import MEGA, MICRO

GRIDS = (128, 256, 512)
TILE = (256, 128)  # rows and columns of the tile that NVIDIA's Figure 5 forces
MODELS = (
    "llama-3.1-8b",
    "llama-3.1-70b",
    "qwen3-235b-a22b",
    "gpt-oss-120b",
    "deepseek-v3",
    "gemma-4-26b-a4b",
    "nemotron-3-nano-30b-a3b",
)
# The sizes of a model that a grid is asked of: title, and the first of these linear layers that the model has.
SIZES = (
    ("width H", (("attention", "o", "n"), ("mixer", "o", "n"))),
    ("query heads", (("attention", "o", "k"),)),
    ("KV heads", (("attention", "k", "n"), ("attention", "kv up", "n"))),
    ("dense FFN", (("ffn", "down", "k"),)),
    ("one expert", (("experts", "down", "k"),)),
    ("vocabulary", (("head", "head", "n"),)),
)
OFF = replace(GATED, hidden=6080, ffn=16736)  # off the grid by half a tile, with as many parameters


def sizes(model, tp):
    """The sizes named above as the fullest of `tp` GPUs holds them; None where the model has no such part."""
    held = {(one.part, one.name): one for one in gemm.model_layers(model, tp)}
    found = {}
    for title, places in SIZES:
        place = next((p for p in places if p[:2] in held), None)
        found[title] = getattr(held[place[:2]], place[2]) if place else None
    return found


def best_grid(size):
    """The largest of 512, 256 and 128 that divides a size, else its largest power of two in brackets."""
    if size is None:
        return "none"
    return next((str(grid) for grid in reversed(GRIDS) if size % grid == 0), f"({gemm.alignment(size)})")


def in_grid(size, grid=128):
    """A size as a multiple of a grid, in words."""
    return f"{size:,} = {number(size / grid, 9)} × {grid}"


def filled(size, columns=128):
    """Share in percent of the columns that tiles so wide fill with this size."""
    return gemm.tile_efficiency(1, size, (1, columns)) * 100


class TilesAndWaves:
    """The picture of the lesson: what a tile and a wave leave unused."""

    m, n, tiles, chip = 257, 512, 109, "a100"

    def setup(self, fig):
        rows, columns = TILE
        left = axes(fig, [0.14, 0.2, 0.37, 0.64], xlim=(0, self.n), ylim=(2 * rows, 0))
        left.set(xlabel=f"N = {self.n}", title=f"C with M = {self.m}", yticks=(0, rows, 2 * rows))
        left.set_xticks((0, 256, 512))
        left.grid(visible=False)
        left.fill_between([0, self.n], 0, self.m, color=BLUE, lw=0)
        for row in range(0, 2 * rows, rows):
            for column in range(0, self.n, columns):
                left.plot([column, column], [row, row + rows], "-", color=GRID, lw=1.5)
            left.plot([0, self.n], [row + rows, row + rows], "-", color=MUTE, lw=1)
        left.text(self.n / 2, rows / 2, "needed", color=PAPER, ha="center", va="center")
        left.text(self.n / 2, 1.55 * rows, "thrown away", color=INK, ha="center", va="center", fontsize=8)
        self.draw_waves(axes(fig, [0.63, 0.2, 0.32, 0.64]))
        for ax in fig.axes:
            ax.title.set_fontsize(9)

    def draw_waves(self, ax):
        sms = chip_named(self.chip).sm
        ax.set(xlim=(0, sms), ylim=(1.6, -0.6), yticks=(0, 1), yticklabels=("1", "2"))
        ax.set(xlabel=f"{sms} SMs of an A100", title=f"{self.tiles} tiles in waves")
        ax.set_xticks((0, 54, 108))
        ax.grid(visible=False)
        ax.barh([0, 1], [sms, self.tiles - sms], height=0.7, color=BLUE)
        ax.text(sms / 2, 0, "busy", color=PAPER, ha="center", va="center")
        ax.text(sms / 2, 1, f"{sms - 1} idle", color=INK, ha="center", va="center", fontsize=8)

    def update(self):
        share = gemm.tile_efficiency(self.m, self.n, TILE)
        sms = chip_named(self.chip).sm
        return (
            f"A result of {self.m} x {self.n} takes {gemm.tiles(self.m, self.n, TILE):.0f} tiles of {TILE[0]} x "
            f"{TILE[1]} and needs {number(share * 100)} % of their elements: one row past the edge costs a second row "
            f"of tiles. {self.tiles} tiles on {sms} SMs take {gemm.waves(self.tiles, sms):.0f} waves, "
            f"{number(gemm.wave_efficiency(self.tiles, sms) * 100)} % filled."
        )


class Sawtooth:
    """Share of the best rate against N: one fixed tile and whole waves, and the calibrated model with its menu."""

    m, k = 8192, 8192
    outputs = np.arange(2048, 4352 + 1, 32)

    def setup(self, fig):
        ax = axes(fig, [0.13, 0.14, 0.83, 0.7], xlim=(2048, 4352), ylim=(58, 102))
        ax.set(xlabel="outputs N", ylabel="share of the best (%)", xticks=(2048, 2560, 3072, 3584, 4096))
        (self.tile,) = ax.plot(self.outputs, self.outputs, ":", color=GREEN, lw=1.8, label="fixed tile")
        (self.wave,) = ax.plot(self.outputs, self.outputs, "-", color=ORANGE, lw=1.2, label="whole waves")
        (self.menu,) = ax.plot(self.outputs, self.outputs, "-", color=BLUE, lw=2.4, label="calibrated")
        (self.worst,) = ax.plot([1], [1], "s", color=ORANGE, ms=7)
        (self.here,) = ax.plot([1], [1], "o", color=BLUE, ms=8)
        self.who, self.verdict = above(fig)
        ax.legend(loc="lower center", frameon=True, framealpha=1, facecolor=PAPER, edgecolor=PAPER)

    @classmethod
    @cache
    def rates(cls, chip, kernel):
        """Calibrated rates over all N as shares of the best of them, in percent."""
        rate = gemm.flops(cls.m, cls.outputs, cls.k) / cls.plan(cls.outputs, chip, kernel).total
        return rate / rate.max() * 100

    @classmethod
    def plan(cls, n, chip, kernel):
        return gemm.calibrated(cls.m, n, cls.k, chip, kernel)

    @classmethod
    def fixed(cls, n, chip, columns):
        """Tile efficiency, and its product with wave efficiency, in percent; a wide tile keeps several SMs busy."""
        tile = (TILE[0], columns)
        tiles, places = gemm.tiles(cls.m, n, tile), chip_named(chip).sm // (columns // TILE[1])
        share = gemm.tile_efficiency(cls.m, n, tile) * 100
        return share, share * gemm.wave_efficiency(tiles, places)

    def update(self, *, n, columns, kernel, chip):
        tile, wave = self.fixed(self.outputs, chip, columns)
        menu = self.rates(chip, kernel)
        for line, values in ((self.tile, tile), (self.wave, wave), (self.menu, menu)):
            line.set_ydata(values)
        at = int(np.flatnonzero(self.outputs == n)[0])
        self.worst.set_data([n], [wave[at]])
        self.here.set_data([n], [menu[at]])
        plan = self.plan(n, chip, kernel)
        name = chip_named(chip).name
        self.who.set_text(f"{name}, {TITLE_OF[kernel]}, N = {n}")
        self.verdict.set_text(f"fixed {number(wave[at])} %, calibrated {number(menu[at])} %")
        return (
            f"{name}, M = K = {self.m}, N = {n} = {number(n / columns, 5)} × {columns}: tiles of {TILE[0]} x {columns} "
            f"are {number(tile[at])} % full, and with whole waves {number(wave[at])} % of the chip works. The "
            f"calibrated model in {TITLE_OF[kernel]} may choose: it takes {plan.rows:.0f} x {plan.columns:.0f} and "
            f"reaches {number(menu[at])} % of its best rate in this range (an estimate, untested between multiples "
            "of 128)."
        )


class Staircase:
    """Rounds that so many tiles take: shared out ideally, in whole waves, and as the calibrated model pays them."""

    reach = np.arange(1, 461)

    def setup(self, fig):
        ax = axes(fig, [0.11, 0.14, 0.85, 0.82], xlim=(0, 460), ylim=(0, 5.4))
        ax.set(xlabel="tiles", ylabel="rounds")
        (self.even,) = ax.plot(self.reach, self.reach, ":", color=GREEN, lw=1.8, label="no idle SM")
        (self.whole,) = ax.plot(self.reach, self.reach, "-", color=ORANGE, lw=1.4, label="whole waves")
        (self.paid,) = ax.plot(self.reach, self.reach, "-", color=BLUE, lw=2.4, label="calibrated")
        (self.top,) = ax.plot([1], [1], "s", color=ORANGE, ms=7)
        (self.here,) = ax.plot([1], [1], "o", color=BLUE, ms=8)
        self.who, self.verdict = captions(ax, 8, 4.9)
        ax.legend(
            loc="lower right", bbox_to_anchor=(0.93, 0), frameon=True, framealpha=1, facecolor=PAPER, edgecolor=PAPER
        )

    def update(self, *, tiles, chip):
        one = chip_named(chip)
        self.even.set_ydata(self.reach / one.sm)
        self.whole.set_ydata(gemm.waves(self.reach, one.sm))
        self.paid.set_ydata(gemm.rounds(self.reach, one.sm))
        waves, share = gemm.waves(tiles, one.sm), gemm.wave_efficiency(tiles, one.sm) * 100
        paid = gemm.rounds(tiles, one.sm)
        self.top.set_data([tiles], [waves])
        self.here.set_data([tiles], [paid])
        self.who.set_text(f"{one.name}, {tiles} tiles")
        self.verdict.set_text(f"{many(int(waves), 'wave')}, {number(share, 4)} % filled")
        return (
            f"{many(tiles, 'tile')} on the {one.sm} SMs of {one.name}: {many(int(waves), 'wave')}, "
            f"{number(share, 4)} % filled. The calibrated model pays {number(paid, 4)} rounds for them"
            f"{'' if paid == waves else ', since persistent kernels start the next work early'}."
        )


class AfterSharding:
    """The largest power of two in each size of a model, as one of several GPUs holds it."""

    def setup(self, fig):
        names = [title for title, _ in SIZES]
        ax = axes(fig, [0.245, 0.14, 0.36, 0.7], xscale="log", xlim=(1, 1024), ylim=(len(names) - 0.4, -0.6))
        ax.set(xlabel="largest power of 2 in it", yticks=range(len(names)), yticklabels=names)
        log_ticks(ax, x=(1, 8, 128, 512))
        ax.grid(axis="y", visible=False)
        ax.plot([128, 128], [-0.6, len(names) - 0.4], "--", color=INK, lw=1)
        self.bars = ax.barh(range(len(names)), [1] * len(names), height=0.6, color=GREEN)
        places = [(1.04, row) for row in range(len(names))]
        self.labels = [
            ax.text(x, y, "", color=INK, va="center", fontsize=8, transform=ax.get_yaxis_transform()) for x, y in places
        ]
        self.who = fig.text(0.03, 0.92, "", color=MUTE)

    def update(self, *, model, tp):
        m, name = named_model(model), title_of(model)
        held = sizes(m, tp)
        for bar, label, size in zip(self.bars, self.labels, held.values(), strict=True):
            power = gemm.alignment(size) if size else 1
            bar.set_width(min(power, 1024))
            bar.set_color(GREEN if power >= 128 else ORANGE)
            label.set_text(in_grid(size) if size else "none")
        off = {title: size for title, size in held.items() if size and size % 128}
        self.who.set_text(f"{name} on {many(tp, 'GPU')}: {len(off)} of {sum(map(bool, held.values()))} off the grid")
        inside = ", ".join(f"{title} {in_grid(size)}" for title, size in held.items() if size)
        if not off:
            return f"{name} cut over {many(tp, 'GPU')}: {inside}. All are multiples of 128."
        worst = min(off, key=lambda title: filled(off[title]))
        return (
            f"{name} cut over {many(tp, 'GPU')}: {inside}. Off the grid: {', '.join(off)}; {worst} fills "
            f"{number(filled(off[worst]))} % of tiles 128 wide."
        )


class OnSilicon:
    """What one token past a tile edge costs: measured layers, and the calibrated model of the same ones."""

    low, high, most = 2048, 16384, 125

    def setup(self, fig):
        ax = axes(fig, [0.14, 0.14, 0.82, 0.82], xscale="log", xlim=(3.5, 180), ylim=(-60, self.most))
        ax.set(xlabel="weights of the layer (millions)", ylabel="more time (%)")
        log_ticks(ax, x=(4, 8, 16, 32, 64, 128))
        ax.plot([3.5, 180], [0, 0], "-", color=MUTE, lw=1)
        (self.model,) = ax.plot([1], [1], "s", color=BLUE, markerfacecolor="none", ms=6, label="calibrated")
        (self.points,) = ax.plot([1], [1], "o", color=ORANGE, ms=5, label="measured")
        (self.middle,) = ax.plot([3.5, 180], [0, 0], "--", color=ORANGE, lw=1.3)
        self.who, self.verdict = captions(ax, 3.8, 108)
        ax.legend(
            loc="lower right",
            bbox_to_anchor=(0.97, 0),
            ncols=2,
            frameon=True,
            framealpha=1,
            facecolor=PAPER,
            edgecolor=PAPER,
        )

    @classmethod
    @cache
    def rows(cls, chip, dtype, edge):
        """Weights in millions, and the extra time in percent of edge + 1 tokens: measured, calibrated."""
        between = lambda size: (size >= cls.low) & (size <= cls.high)  # noqa: E731
        found = {}
        for m in (edge, edge + 1):
            table = silicon.gemm_table().where(chip=chip, dtype=dtype, m=m, n=between, k=between)
            found[m] = dict(zip(zip(table["n"], table["k"], strict=True), table["latency"], strict=True))
        pairs = sorted(found[edge].keys() & found[edge + 1].keys())
        n, k = np.array(pairs).T
        measured = np.array([found[edge + 1][pair] / found[edge][pair] for pair in pairs])
        plans = [gemm.calibrated(m, n, k, chip, silicon.KERNEL_OF[dtype]).total for m in (edge, edge + 1)]
        return n * k / MEGA, (measured - 1) * 100, (plans[1] / plans[0] - 1) * 100

    @classmethod
    def medians(cls, chip, dtype, edge):
        """Extra time in percent, in the median over the layers: measured, calibrated."""
        _, measured, modelled = cls.rows(chip, dtype, edge)
        return float(np.median(measured)), float(np.median(modelled))

    def update(self, *, chip, edge, dtype):
        one, lacking = chip_named(chip), (chip, dtype) == ("h200", "nvfp4")
        for artist in (self.model, self.points, self.middle):
            artist.set_visible(not lacking)
        self.who.set_text(f"{one.name}, {TITLE[dtype]}, {edge + 1} against {edge}")
        if lacking:
            self.verdict.set_text("no NVFP4 arithmetic")
            return f"{one.name} has no NVFP4 arithmetic, so there is nothing to compare with {edge} tokens."
        weights, measured, modelled = self.rows(chip, dtype, edge)
        self.points.set_data(weights, measured)
        self.model.set_data(weights, modelled)
        median, expected = self.medians(chip, dtype, edge)
        self.middle.set_ydata([median, median])
        self.verdict.set_text(f"median {signed(median)}, calibrated {signed(expected)}")
        return (
            f"{one.name}, {TITLE[dtype]}, {edge + 1} tokens against {edge}: the time of {len(weights)} measured layers "
            f"with N and K from {self.low} to {self.high} changes by {signed(median)} in the median, from "
            f"{signed(measured.min())} to {signed(measured.max())}{off_the_figure(measured, self.most)}; the "
            f"calibrated model says {signed(expected)}."
        )


def above(fig):
    """Two lines of text over the axes: whose figure it is, and the verdict."""
    return fig.text(0.03, 0.94, "", color=MUTE), fig.text(0.03, 0.875, "", color=INK)


def off_the_figure(values, most):
    """A remark where values lie above what the figure shows."""
    above = int((values > most).sum())
    return f" ({above} above the figure)" if above else ""


def signed(percent):
    """A percentage with its sign, to a tenth."""
    return f"{percent:+.1f} %".replace("-", "\N{MINUS SIGN}")


TITLE_OF = {kernel: TITLE[dtype] for dtype, kernel in silicon.KERNEL_OF.items()}


class Guess:
    """A reader's guess of what token 257 costs; at the end beside the model and the measurement."""

    m, n, k, chip, format = 257, 8192, 8192, "gb300", "nvfp4"

    def __init__(self, reveal):
        self.reveal = reveal

    def setup(self, fig):
        names = ("you", "calibrated model", "measured")[: 3 if self.reveal else 1]
        self.marks = guess_marks(fig, names, (0.3, 1, 3, 10, 30, 100), "extra time of one more token (%)")

    @classmethod
    def answers(cls):
        """Extra time in percent of the last token: calibrated, and measured."""
        table = silicon.gemm_table().where(chip=cls.chip, dtype=cls.format, n=cls.n, k=cls.k)
        times = [float(table.where(m=m)["latency"][0]) for m in (cls.m - 1, cls.m)]
        plans = [gemm.calibrated(m, cls.n, cls.k, cls.chip, cls.format).total for m in (cls.m - 1, cls.m)]
        return (plans[1] / plans[0] - 1) * 100, (times[1] / times[0] - 1) * 100

    def update(self, *, guess):
        modelled, measured = self.answers()
        move_marks(self.marks, (guess, modelled, measured), turn=10)
        if not self.reveal:
            return f"Your guess: token {self.m} costs {number(guess)} % of the time of the first {self.m - 1}."
        return (
            f"You guessed {number(guess)} %. The calibrated model says {number(modelled)} %, the measurement "
            f"{number(measured)} %: your guess is {how_far(guess, measured)} the measurement."
        )


class Frontier:
    """The running case on and off the grid: tokens/s per user against tokens/s per GPU."""

    batches = (16, 64, 128, 129, 256, 257, 512, 513, 1024, 4096)
    designs = ((GATED, BLUE, "-", "o", "on the grid"), (OFF, ORANGE, "--", "s", "off the grid"))

    def setup(self, fig):
        ax = axes(fig, [0.19, 0.16, 0.4, 0.62], xscale="log", yscale="log", xlim=(5, 1000), ylim=(500, 1.2e5))
        ax.set(xlabel="tokens/s per user", ylabel="tokens/s per GPU")
        log_ticks(ax, x=(10, 100, 1000), y=(1000, 10000, 100000))
        self.lines = [
            ax.plot([1], [1], dash, marker=marker, color=colour, ms=4, label=label)[0]
            for _, colour, dash, marker, label in self.designs
        ]
        (self.here,) = ax.plot([1], [1], "o", color=PURPLE, markerfacecolor="none", ms=12, mew=2)
        ax.legend(loc="lower left")
        side = axes(fig, [0.72, 0.16, 0.24, 0.62], xscale="log", xlim=(12, 6000), ylim=(-1, 5))
        side.set(xlabel="tokens a step", title="off it: more time (%)")
        side.title.set_fontsize(8)
        log_ticks(side, x=(16, 128, 1024))
        side.plot([12, 6000], [0, 0], "-", color=BLUE, lw=1)
        (self.losses,) = side.plot(self.batches, self.batches, "--", marker="s", color=ORANGE, ms=4)
        (self.loss,) = side.plot([1], [1], "o", color=PURPLE, markerfacecolor="none", ms=12, mew=2)
        self.who, self.verdict = above(fig)

    @staticmethod
    @cache
    def curve(draft, tp):
        """Both rates of a design over all batches."""
        return np.array([calibrated_rates(draft, "gb300", batch, tp) for batch in Frontier.batches]).T

    @staticmethod
    @cache
    def lost(batch, tp, format):
        """Percent of the step that the design off the grid takes longer."""
        on, off = (
            calibrated_step_time(replace(draft, format=format), "gb300", batch, tp) for draft, *_ in Frontier.designs
        )
        return (off / on - 1) * 100

    def update(self, *, batch, tp, format):
        for line, (draft, *_) in zip(self.lines, self.designs, strict=True):
            line.set_data(*self.curve(replace(draft, format=format), tp))
        user, gpu = calibrated_rates(replace(GATED, format=format), "gb300", batch, tp)
        self.here.set_data([user], [gpu])
        lost = self.lost(batch, tp, format)
        self.losses.set_ydata([self.lost(one, tp, format) for one in self.batches])
        self.loss.set_data([batch], [lost])
        self.who.set_text(f"{many(tp, 'GPU')} of GB300, {TITLE[format]}, {many(batch, 'token')} a step")
        self.verdict.set_text(f"off the grid the step takes {signed(lost)}")
        return (
            f"{many(tp, 'GPU')} of GB300, {TITLE[format]}, {many(batch, 'token')} a step: on the grid "
            f"{number(user, 4)} tokens/s per user and {number(gpu, 4)} per GPU, a step of "
            f"{number(batch / gpu / tp / MICRO, 5)} µs. Off the grid the step's time changes by {signed(lost)} "
            "(calibrated, linear layers only, no communication; untested off the grid)."
        )


# ------------------------------------------------------------------ what the reader can move
CHIPS_MEASURED = ("gb300", "b200", "h200")


def chip_name(chip):
    return chip_named(chip).name


def guess_controls():
    shares = (0.3, 1, 3, 10, 30, 100)
    return [slider("guess", "Your guess", shares, 3, lambda v: f"{v} %", keep="alignment-guess")]


def sawtooth_controls():
    outputs = (2048, 2080, 2304, 2560, 2592, 2816, 2880, 3072, 3104, 3584, 4096)
    return [
        slider("n", "Outputs N", outputs, 2592),
        choice("columns", "Tile width", GRIDS, 256),
        choice("kernel", "Format", ("bf16", "fp8_block", "nvfp4"), "bf16", TITLE_OF.get),
        choice("chip", "Chip", ("gb300", "b200"), "gb300", chip_name, live=True),
    ]


def staircase_controls():
    tiles = (54, 108, 109, 132, 133, 148, 150, 152, 153, 216, 264, 304, 305, 432, 433)
    return [
        slider("tiles", "Tiles", tiles, 109),
        choice("chip", "Chip", ("a100", "h200", "b200", "gb300"), "a100", chip_name),
    ]


def sharding_controls(mine):
    return [
        model_choice(mine, MODELS, "gpt-oss-120b"),
        slider("tp", "GPUs (TP)", (1, 2, 4, 8, 16, 32), 1),
    ]


def silicon_controls():
    return [
        choice("chip", "Chip", CHIPS_MEASURED, "gb300", chip_name),
        slider("edge", "Tile edge", GRIDS, 128),
        choice("dtype", "Format", ("bfloat16", "fp8_block", "nvfp4"), "nvfp4", TITLE.get),
    ]


def frontier_controls():
    return [
        slider("batch", "Tokens a step", Frontier.batches, 256),
        slider("tp", "GPUs (TP)", (1, 8, 16), 1),
        choice("format", "Format", ("bf16", "nvfp4"), "bf16", TITLE.get),
    ]
