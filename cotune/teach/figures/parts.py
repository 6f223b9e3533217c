"""What the figures of several lessons share: axes, corner captions, the looks of formats, and common controls."""

from cotune.chip import CHIPS, chip_named
from cotune.config import model_named
from cotune.teach.explorer import choice
from cotune.teach.prose import number
from cotune.teach.svg import BLUE, GREEN, GRID, INK, MUTE, ORANGE, PURPLE
from cotune.units import KIB

FORMATS = ("bf16", "fp8", "nvfp4")
TITLE = {"bf16": "BF16", "fp8": "FP8", "nvfp4": "NVFP4", "bfloat16": "BF16", "fp8_block": "block FP8"}
LOOK = {"bf16": (BLUE, "-", "o"), "fp8": (GREEN, "--", "s"), "nvfp4": (ORANGE, "-.", "^")}
BOX = [0.165, 0.14, 0.8, 0.82]


def axes(fig, box=BOX, **settings):
    """Axes with a light grid and no background of their own."""
    ax = fig.add_axes(box)
    ax.patch.set_visible(False)
    ax.grid(color=GRID, lw=0.6)
    ax.set_axisbelow(True)
    ax.tick_params(length=2)
    ax.set(**settings)
    return ax


def log_ticks(ax, x=(), y=()):
    """Put plain numbers at the given places of logarithmic axes."""
    for axis, places in ((ax.xaxis, x), (ax.yaxis, y)):
        if len(places):
            axis.set_major_locator(_fixed(places))
            axis.set_major_formatter(lambda v, _: number(v, 6))
            axis.set_minor_locator(_fixed([]))


def _fixed(places):
    from matplotlib.ticker import FixedLocator

    return FixedLocator(places)


def named(chip, format):
    """The chip's name, with what has to be said about the figures that its roof uses."""
    flag = caveat(chip, format)
    return f"{chip.name} ({flag})" if flag else chip.name


def caveat(chip, format):
    """What has to be said about the peak and the bandwidth of a chip, "" if nothing."""
    return chip.caveat(format, "bandwidth") if chip.figure(format).value is not None else ""


def many(number_, thing):
    """A number of things in words: 1 token, 2 tokens."""
    return f"{number_:,} {thing}" + ("" if number_ == 1 else "s")


def tokens_short(tokens):
    """A context as people write it: 131072 is 128K."""
    return f"{tokens // KIB**2}M" if tokens >= KIB**2 else f"{tokens // KIB}K" if tokens >= KIB else str(tokens)


def named_model(model):
    """Return the Model of a control's value: a name that comes with the course, or the reader's own Model."""
    return model_named(model) if isinstance(model, str) else model


def title_of(model):
    return model if isinstance(model, str) else model.name


def captions(ax, x, y):
    """Two lines of text in a corner: whose roof it is, and the verdict."""
    who = ax.text(x, y, "", color=MUTE, va="bottom")
    return who, ax.annotate("", (x, y), (0, -4), textcoords="offset points", color=INK, va="top")


def lacks(scene, chip, format):
    """Whether the chip has no arithmetic for the format; the scene then shows that in place of its artists."""
    lacking = chip.figure(format).value is None
    for artist in scene.moving:
        artist.set_visible(not lacking)
    flag = caveat(chip, format)
    scene.who.set_text(f"{chip.name}, {TITLE[format]}" + (f" ({flag.partition(',')[0]})" if flag else ""))
    if lacking:
        scene.verdict.set_text(f"no {TITLE[format]} arithmetic")
    return lacking


def said_lacking(chip, format):
    """The package's own words about a format that a chip lacks."""
    try:
        chip.peak(format)
    except ValueError as error:
        return f"{chip.name}: {error}. Choose another format or chip."


def format_choice(default):
    return choice("format", "Format", FORMATS, default, TITLE.get)


def chip_choice(live):
    return choice("chip", "Chip", CHIPS, "gb300", lambda c: chip_named(c).name, live=live)


def model_choice(mine, models, default, *, fits=True):
    """The models of a lesson, and the reader's own Model where it is another one and fits what is shown."""
    known = mine.name in models and mine == model_named(mine.name)
    return choice("model", "Model", (*models, mine) if fits and not known else models, default, title_of)


GUESS_LOOKS = ((PURPLE, "D", 0.75), (BLUE, "o", 0.45), (ORANGE, "s", 0.15))


def guess_marks(fig, names, ticks, xlabel):
    """One logarithmic axis with a mark and a name for a guess and for what it is compared with."""
    ax = axes(
        fig, [0.04, 0.34, 0.92, 0.52], xscale="log", xlim=(ticks[0] / 1.25, ticks[-1] * 1.4), ylim=(0, 1), yticks=[]
    )
    ax.spines["left"].set_visible(False)
    ax.set_xlabel(xlabel)
    log_ticks(ax, x=ticks)
    marks = []
    for name, (colour, marker, height) in zip(names, GUESS_LOOKS, strict=False):
        (point,) = ax.plot([1], [height], marker, color=colour, ms=9)
        marks.append((point, ax.text(1, height, name, color=colour, va="center")))
    return marks


def move_marks(marks, values, turn):
    """Move the marks to their values; a name stands right of its mark below `turn`, left of it above."""
    for (point, label), value in zip(marks, values, strict=False):
        point.set_xdata([value])
        label.set(x=value * (1.28 if value < turn else 1 / 1.28), ha="left" if value < turn else "right")


def how_far(guess, right):
    """How far a guess is from what is right, in words: a factor 3 above."""
    return f"a factor {number(max(guess / right, right / guess))} {'above' if guess > right else 'below'}"
