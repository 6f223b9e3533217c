"""Figures and scenes of lesson 06. They draw and say what cotune counts; no formula stands here."""

from functools import cache

import numpy as np

from cotune import count, layer, silicon
from cotune.chip import chip_named
from cotune.config import model_named
from cotune.teach.explorer import choice, slider
from cotune.teach.figures.parts import (
    axes,
    captions,
    chip_choice,
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
from cotune.teach.running_case import GATED, as_model, decode_rates, most_requests
from cotune.teach.svg import BLUE, GREEN, INK, MUTE, ORANGE, PAPER, PURPLE
from cotune.units import GIGA, KILO, MEGA, MICRO, TERA

MODELS = (
    "llama-3.1-8b",
    "llama-3.1-70b",
    "mixtral-8x7b",
    "qwen3-235b-a22b",
    "gpt-oss-120b",
    "deepseek-v3",
    "qwen3.5-27b",
    "nemotron-3-nano-30b-a3b",
)
KINDS = {
    "llama-3.1-8b": "grouped queries, dense",
    "llama-3.1-70b": "grouped queries, dense",
    "mixtral-8x7b": "grouped queries, 8 experts",
    "qwen3-235b-a22b": "grouped queries, 128 experts",
    "gpt-oss-120b": "every other layer a window",
    "deepseek-v3": "latent attention, 256 experts",
    "qwen3.5-27b": "3 linear layers to 1 of attention",
    "nemotron-3-nano-30b-a3b": "state-space layers, 6 of attention",
}
# What the breakdowns of cotune are drawn as: title, colour, and the parts that belong to it.
GROUPS = (
    ("attention", BLUE, ("attention", "scores", "index scores")),
    ("mixers", PURPLE, ("mixer", "state update")),
    ("dense FFN", GREEN, ("ffn", "shared experts")),
    ("experts", ORANGE, ("experts",)),
    ("embedding and head", MUTE, ("embedding", "head")),
)
REST = "rest"


def grouped(breakdown):
    """Shares in percent of the groups above and of the rest, from a count.Breakdown."""
    total = breakdown.total
    shares = {g: sum(breakdown.parts.get(p, 0) for p in parts) / total * 100 for g, _, parts in GROUPS}
    return shares | {REST: 100 - sum(shares.values())}


def billions(value):
    return f"{number(value / GIGA)} billion"


def size(value):
    """Bytes as people read them, decimal."""
    unit, name = next(
        ((u, n) for u, n in ((TERA, "TB"), (GIGA, "GB"), (MEGA, "MB"), (KILO, "kB")) if value >= u), (1, "B")
    )
    return f"{number(value / unit)} {name}"


def beyond(model, context):
    """A remark where a context is longer than the one the model is made for."""
    return f" (made for {tokens_short(model.context)})" if model.context and context > model.context else ""


def bars(ax, count_, colour=BLUE):
    """Horizontal bars from the top down that a scene moves by `stretch`."""
    return ax.barh(range(count_), [1] * count_, height=0.6, color=colour)


class Parameters:
    """The picture of the lesson: where the parameters of eight models are."""

    def setup(self, fig):
        ax = axes(fig, [0.37, 0.12, 0.59, 0.8], xlim=(0, 100), ylim=(len(MODELS) - 0.5, -0.6))
        ax.set(xlabel="share of all parameters (%)", yticks=range(len(MODELS)), yticklabels=MODELS)
        ax.grid(axis="y", visible=False)
        self.shares = {}
        for row, name in enumerate(MODELS):
            self.shares[name] = grouped(count.parameters(model_named(name)))
            left = 0
            for group, colour, _ in GROUPS:
                share = self.shares[name][group]
                ax.barh([row], [share], left=left, height=0.7, color=colour, edgecolor=PAPER, lw=0.8)
                if share >= 20:
                    ax.text(left + share / 2, row, group, color=PAPER, ha="center", va="center", fontsize=8)
                left += share

    def update(self):
        said = []
        for name in MODELS:
            group, share = max(self.shares[name].items(), key=lambda item: item[1])
            m = model_named(name)
            active = count.active_parameters(m).total
            total = count.parameters(m).total
            said.append(f"{name} {billions(total)}, {number(share)} % of it {group}, {billions(active)} active")
        return "Parameters: " + "; ".join(said) + "."


class WhatItHolds:
    """Bytes that one model holds and reads: weights, cache and state."""

    rows = ("weights held", "read for a token", "one cache", "one state")

    def setup(self, fig):
        ax = axes(fig, [0.33, 0.15, 0.63, 0.68], xscale="log", xlim=(1e-3, 4e3), ylim=(3.6, -0.6))
        ax.set(xlabel="GB", yticks=range(4), yticklabels=self.rows)
        ax.grid(axis="y", visible=False)
        log_ticks(ax, x=(0.001, 0.01, 0.1, 1, 10, 100, 1000))
        self.bars = bars(ax, 4)
        for bar, colour in zip(self.bars, (BLUE, GREEN, ORANGE, PURPLE), strict=True):
            bar.set_color(colour)
        self.labels = [ax.text(1, row, "", color=INK, va="center", fontsize=8) for row in range(4)]
        self.who = fig.text(0.05, 0.9, "", color=MUTE)

    def update(self, *, model, context, format, tp):
        m, name = named_model(model), title_of(model)
        held = count.weight_bytes(m, format, tp=tp).total
        read = count.active_weight_bytes(m, format, tp=tp).total
        cache = count.kv_bytes(m, context, tp=tp).total
        state = float(count.state_bytes(m, tp=tp).total)
        values = (held, read, cache, state)
        for bar, label, value in zip(self.bars, self.labels, values, strict=True):
            bar.set_width(max(value / GIGA, 1e-9))
            label.set(x=max(value / GIGA, 1e-3) * 1.15, text=size(value) if value else "none")
            if value / GIGA > 400:
                label.set(x=value / GIGA / 1.15, ha="right", color=PAPER)
            else:
                label.set(ha="left", color=INK)
        flop = layer.decode_flops(m, context, tp=tp)
        where = f" on each of {tp} GPUs" if tp > 1 else ""
        self.who.set_text(f"{name}: {KINDS.get(model, 'your model')}")
        return (
            f"{name} at {tokens_short(context)} tokens{beyond(m, context)}, weights in "
            f"{format.upper()}{where}: {size(held)} of weights, of which "
            f"one token reads {size(read)}; {size(cache)} of cache in BF16"
            + (f" and {size(state)} of state" if state else " and no state")
            + f" for a sequence; {number(flop.total / GIGA)} GFLOP for the next token."
        )


class Growth:
    """KV bytes of one sequence against its length: what is needed, what is reserved, what a slip predicts."""

    contexts = np.unique(np.round(np.logspace(0, 20, 81, base=2)))

    def setup(self, fig):
        ax = axes(fig, [0.2, 0.14, 0.76, 0.82], xscale="log", yscale="log", xlim=(1, 2**20), ylim=(1e3, 1e12))
        ax.set(xlabel="context (tokens)", ylabel="KV bytes of one sequence")
        log_ticks(ax, x=(1, 128, 4096, 131072), y=(1e4, 1e6, 1e8, 1e10, 1e12))
        ax.yaxis.set_major_formatter(lambda v, _: size(v))
        (self.need,) = ax.plot(self.contexts, self.contexts, "-", color=BLUE, lw=2.2, label="needed")
        (self.kept,) = ax.plot(self.contexts, self.contexts, "--", color=GREEN, lw=1.6, label="reserved")
        (self.slip,) = ax.plot(self.contexts, self.contexts, ":", color=ORANGE, lw=3.5, label="predicted")
        (self.here,) = ax.plot([1], [1], "o", color=BLUE, ms=9)
        self.who, self.verdict = captions(ax, 1.3, 1.6e11)
        ax.legend(loc="lower right", frameon=True, framealpha=1, facecolor=PAPER, edgecolor=PAPER)

    def update(self, *, model, context, format):
        m, name = named_model(model), title_of(model)
        first = count.kv_bytes_first_token(m, format).total
        slope = count.kv_bytes_per_token(m, format).total
        now, kept = count.kv_bytes(m, context, format).total, count.kv_bytes_reserved(m, context, format).total
        self.need.set_ydata(np.maximum(count.kv_bytes(m, self.contexts, format).total, 1))
        self.slip.set_ydata(first * self.contexts)
        self.kept.set_ydata(count.kv_bytes_reserved(m, self.contexts, format).total)
        self.here.set_data([context], [max(now, 1)])
        self.who.set_text(f"{name}: {KINDS.get(model, 'your model')}")
        self.verdict.set_text(f"{size(now)} at {tokens_short(context)} tokens")
        return (
            f"{name}, cache in {format.upper()}: the first token takes {size(first)}, a further one {size(slope)} once "
            f"windows are full, so {many(context, 'token')}{beyond(m, context)} need {size(now)}, where "
            "first token times context would say "
            f"{size(first * context)}; an engine with unified pages reserves {size(kept)}."
        )


class WhereFlopsGo:
    """Shares of the FLOP of one decoded token."""

    def setup(self, fig):
        names = [g for g, *_ in GROUPS] + [REST]
        ax = axes(fig, [0.345, 0.15, 0.615, 0.68], xlim=(0, 105), ylim=(len(names) - 0.4, -0.6))
        ax.set(xlabel="share of the FLOP of one token (%)", yticks=range(len(names)), yticklabels=names)
        ax.grid(axis="y", visible=False)
        self.bars = bars(ax, len(names), MUTE)
        for bar, (_, colour, _) in zip(self.bars, GROUPS, strict=False):
            bar.set_color(colour)
        self.labels = [ax.text(1, row, "", color=INK, va="center", fontsize=8) for row in range(len(names))]
        self.who = fig.text(0.05, 0.9, "", color=MUTE)

    def update(self, *, model, context):
        m, name = named_model(model), title_of(model)
        found = layer.decode_flops(m, context)
        shares = grouped(found)
        for bar, label, share in zip(self.bars, self.labels, shares.values(), strict=True):
            bar.set_width(share)
            inside = share > 85
            label.set(x=share - 1 if inside else share + 1, ha="right" if inside else "left")
            label.set(text=f"{number(share)} %", color=PAPER if inside else INK)
        seen = sum(found.parts.get(p, 0) for p in ("scores", "index scores"))
        self.who.set_text(f"{name} at {tokens_short(context)} tokens")
        return (
            f"{name} makes one token at {tokens_short(context)} tokens{beyond(m, context)} with "
            f"{number(found.total / GIGA)} GFLOP: "
            f"{number(shares['attention'])} % in attention ({number(seen / found.total * 100)} % of all on the cache "
            f"itself), {number(shares['mixers'])} % in mixers, {number(shares['dense FFN'] + shares['experts'])} % in "
            f"FFN and experts, {number(shares['embedding and head'])} % in the head."
        )


class OnSilicon:
    """Measured decode attention of one layer against the bytes of cache that it reads."""

    def setup(self, fig):
        ax = axes(fig, [0.15, 0.14, 0.81, 0.82], xscale="log", yscale="log", xlim=(1e-2, 1e5), ylim=(1, 1e5))
        ax.set(xlabel="cache that one layer reads (MB)", ylabel="time (µs)")
        log_ticks(ax, x=(0.01, 0.1, 1, 10, 100, 1000, 10000), y=(1, 10, 100, 1000, 10000))
        self.reach = np.logspace(-2, 5, 50)
        (self.roof,) = ax.plot(self.reach, self.reach, "-", color=BLUE, lw=2, label="ideal")
        (self.points,) = ax.plot([1], [1], "o", color=ORANGE, ms=4.5, alpha=0.75, label="measured")
        self.who, self.verdict = captions(ax, 1.4e-2, 2.2e4)
        ax.legend(loc="lower right", frameon=True, framealpha=1, facecolor=PAPER, edgecolor=PAPER)

    def update(self, *, chip, batch, dtype):
        table, one = silicon.decode_table().where(chip=chip, batch=batch, dtype=dtype), chip_named(chip)
        ideal = silicon.ideal_decode(table)
        megabytes = ideal.memory * one.bandwidth / MEGA
        share = ideal.total / table["latency"] * 100
        self.roof.set_ydata(self.reach * MEGA / one.bandwidth / MICRO)
        self.points.set_data(megabytes, table["latency"] / MICRO)
        large = megabytes >= 100
        stored = f"{many(batch, 'request')} a step, cache in {silicon.KV_FORMATS[dtype].upper()}"
        self.who.set_text(f"{one.name}, {many(batch, 'request')}, {silicon.KV_FORMATS[dtype].upper()}")
        self.verdict.set_text(f"median: {number(np.median(share))} % of the ideal")
        said = (
            f"those that read 100 MB or more reach {number(np.median(share[large]))} %"
            if large.any()
            else "none of them reads 100 MB"
        )
        return (
            f"{one.name}, {stored}: {len(table)} measured layers reach "
            f"{number(np.median(share))} % of the ideal in the median; {said}. None takes less "
            f"than {number(table['latency'].min() / MICRO)} µs."
        )


class Guess:
    """A reader's guess of one long sequence's cache; at the end beside the count and the published value."""

    model, context = "deepseek-v3", 131072
    published = 70.272 * KILO  # bytes per token in BF16, arXiv 2505.09343, Table 1

    def __init__(self, reveal):
        self.reveal = reveal

    def setup(self, fig):
        names = ("you", "counted", "published")[: 3 if self.reveal else 1]
        self.marks = guess_marks(fig, names, (0.1, 1, 10, 100, 1000), "cache of one sequence (GB)")

    @classmethod
    def answers(cls):
        """Cache in GB: counted, and from the published bytes per token."""
        counted = count.kv_bytes(model_named(cls.model), cls.context).total
        return counted / GIGA, cls.published * cls.context / GIGA

    def update(self, *, guess):
        counted, published = self.answers()
        move_marks(self.marks, (guess, counted, published), turn=100)
        if not self.reveal:
            return f"Your guess: {number(guess)} GB for {self.context:,} tokens. It is kept until the end."
        return (
            f"You guessed {number(guess)} GB. Counted from the config it is {number(counted, 4)} GB, from the paper's "
            f"bytes per token {number(published, 4)} GB: your guess is {how_far(guess, counted)}"
            f"."
        )


class Frontier:
    """What fewer KV heads buy the running case at a given context."""

    batches = np.array([1, 2, 4, 8, 16, 32, 64, 128, 256, 512])
    heads = (48, 8, 4)
    looks = {48: (BLUE, "-", "o"), 8: (GREEN, "--", "s"), 4: (ORANGE, "-.", "^")}

    def setup(self, fig):
        ax = axes(fig, [0.165, 0.14, 0.8, 0.82], xscale="log", yscale="log", xlim=(1, 300), ylim=(3, 1e6))
        ax.set(xlabel="tokens/s per user", ylabel="tokens/s per GPU")
        log_ticks(ax, x=(1, 3, 10, 30, 100), y=(10, 100, 1000, 10000, 100000))
        self.lines = {}
        for heads, (colour, dash, marker) in self.looks.items():
            (self.lines[heads],) = ax.plot([1], [1], dash, marker=marker, color=colour, ms=4, label=f"{heads} KV heads")
        (self.here,) = ax.plot([1], [1], "o", color=INK, markerfacecolor="none", ms=12, mew=2)
        self.who, self.verdict = captions(ax, 1.1, 2e5)
        ax.legend(loc="lower left")

    @staticmethod
    @cache
    def curve(heads, chip, context):
        """Both rates over all batches; kept, since two of the three curves stay as the third one moves."""
        return decode_rates(as_model(GATED, heads), chip, Frontier.batches, context)

    def update(self, *, batch, kv_heads, context, chip):
        for heads, line in self.lines.items():
            model = as_model(GATED, heads)
            fits = self.batches <= most_requests(model, chip, context)
            user, gpu = self.curve(heads, chip, context)
            line.set_data(user[fits], gpu[fits])
        model = as_model(GATED, kv_heads)
        user, gpu = decode_rates(model, chip, batch, context)
        most, one = most_requests(model, chip, context), count.kv_bytes(model, context).total
        self.here.set_data([user], [gpu])
        self.who.set_text(f"{chip_named(chip).name}, {tokens_short(context)} tokens each")
        self.verdict.set_text(
            f"{number(user)} per user, {number(gpu)} per GPU" + ("" if batch <= most else ": no room")
        )
        room = f"at most {most} fit" if most else "not even one fits"
        return (
            f"{chip_named(chip).name}, {kv_heads} KV heads, {many(batch, 'request')} of {context:,} tokens: "
            f"{number(user)} tokens/s per user and {number(gpu)} per GPU. Each request holds {size(one)} of cache, and "
            f"{room}" + ("." if batch <= most else ", so this point is out of reach.")
        )


# ------------------------------------------------------------------ what the reader can move
CONTEXTS = tuple(2**n for n in (0, 7, 10, 12, 14, 15, 16, 17, 18, 20))


def guess_controls():
    sizes = (0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000)
    return [slider("guess", "Your guess", sizes, 100, lambda v: f"{v} GB", keep="anatomy-guess")]


def hold_controls(mine):
    return [
        model_choice(mine, MODELS, "deepseek-v3"),
        slider("context", "Context", (1024, 8192, 65536, 262144), 8192, tokens_short),
        choice("format", "Weights", ("bf16", "fp8", "nvfp4"), "bf16", str.upper),
        slider("tp", "GPUs (TP)", (1, 2, 4, 8, 16), 1, live=True),
    ]


def growth_controls(mine):
    return [
        model_choice(mine, MODELS, "gpt-oss-120b"),
        slider("context", "Context", CONTEXTS, 131072, tokens_short),
        choice("format", "Cache", ("bf16", "fp8", "nvfp4"), "bf16", str.upper, live=True),
    ]


def flop_controls(mine):
    return [
        model_choice(mine, MODELS, "llama-3.1-70b"),
        slider("context", "Context", CONTEXTS[2:], 16384, tokens_short),
    ]


def silicon_controls():
    return [
        choice("chip", "Chip", ("gb300", "b200", "h200"), "gb300", lambda c: chip_named(c).name),
        slider("batch", "Requests", (1, 4, 16, 64, 256), 16),
        choice("dtype", "Cache", tuple(silicon.KV_FORMATS), "bfloat16", lambda d: silicon.KV_FORMATS[d].upper()),
    ]


def frontier_controls():
    batches = tuple(int(b) for b in Frontier.batches)
    return [
        slider("batch", "Requests", batches, 16),
        choice("kv_heads", "KV heads", Frontier.heads, 48),
        choice("context", "Context", (8192, 32768, 131072), 8192, tokens_short),
        chip_choice(live=True),
    ]
