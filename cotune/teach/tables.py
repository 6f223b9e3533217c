"""Tables that a page, a notebook and a screen reader can all read: HTML with headers, and plain text."""

import csv
from collections import Counter
from dataclasses import dataclass
from html import escape
from importlib import resources

from cotune import count
from cotune.chip import CHIPS, FIELDS, STATUSES, chip_named, sources
from cotune.config import model_named, model_names
from cotune.units import GIGA, KILO, MEGA

# The first column stays while a wide table scrolls, on the page's own background: the book's or JupyterLab's.
ROW_HEAD = (
    "position: sticky; left: 0; white-space: normal; min-width: 7rem; "
    "background: var(--pst-color-background, var(--jp-layout-color0, Canvas))"
)


@dataclass(frozen=True)
class Cell:
    """One cell: its `text`, a small `mark` under it, and `links` as (text, address, spoken name)."""

    text: str
    mark: str = ""
    links: tuple = ()


@dataclass(frozen=True)
class Table:
    """A table of cells. `heads`: column titles; `rows`: rows of str or Cell, the first one heading its row.

    compact    : keep the cells on one line; a wide table scrolls sideways, its first column stays
    notes      : sentences under the table
    references : (key, title, address) of a numbered list under the table; a link to "#key" leads there
    """

    caption: str
    heads: tuple
    rows: tuple
    compact: bool = False
    notes: tuple = ()
    references: tuple = ()

    def _repr_html_(self):
        head = "".join(f'<th scope="col">{escape(h)}</th>' for h in self.heads)
        body = "\n".join(f"<tr>{_row_html(row)}</tr>" for row in self.rows)
        notes = "".join(f"<p>{escape(note)}</p>" for note in self.notes)
        lines = ' style="white-space: nowrap"' if self.compact else ""
        return (
            f'<div role="region" tabindex="0" aria-label="{escape(self.caption)}" style="overflow-x: auto">\n'
            f'<table class="table"><caption style="text-align: left">{escape(self.caption)}</caption>\n'
            f"<thead><tr>{head}</tr></thead>\n<tbody{lines}>\n{body}\n</tbody></table></div>\n{notes}{self._list_html()}"
        )

    def _list_html(self):
        items = "\n".join(
            f'<li id="{escape(key)}"><a href="{escape(url)}">{escape(title)}</a></li>'
            for key, title, url in self.references
        )
        return f"<ol>\n{items}\n</ol>" if items else ""

    def __repr__(self):
        lines = [self.heads, *([_plain(cell) for cell in row] for row in self.rows)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        text = ["  ".join(map(str.ljust, line, widths)).rstrip() for line in lines]
        numbered = [f"[{i}] {title}: {url}" for i, (_, title, url) in enumerate(self.references, 1)]
        return "\n".join([self.caption, *text, *self.notes, *numbered])


def _cell(cell):
    return cell if isinstance(cell, Cell) else Cell(cell)


def _plain(cell):
    cell = _cell(cell)
    mark = f" ({cell.mark})" if cell.mark else ""
    return f"{cell.text}{mark}" + "; ".join(text for text, *_ in cell.links)


def _row_html(row):
    first, *others = (_cell_html(_cell(cell)) for cell in row)
    return f'<th scope="row" style="{ROW_HEAD}">{first}</th>' + "".join(f"<td>{cell}</td>" for cell in others)


def _cell_html(cell):
    mark = f"<br><small>{escape(cell.mark)}</small>" if cell.mark else ""
    links = "; ".join(
        f'<a href="{escape(url)}"' + (f' aria-label="{escape(spoken)}"' if spoken else "") + f">{escape(text)}</a>"
        for text, url, spoken in cell.links
    )
    return escape(cell.text) + mark + links


# What the table of all chips shows: field and column title.
COLUMNS = {
    "bf16": "BF16, TFLOP/s",
    "fp8": "FP8, TFLOP/s",
    "fp4": "FP4, TFLOP/s",
    "bandwidth": "Memory, GB/s",
    "capacity": "Memory, GB",
    "link_bandwidth": "Link, GB/s",
    "link_domain": "Chips on the link",
    "nic_bandwidth": "Network, GB/s",
    "sm": "SMs",
    "l2": "Cache, MiB",
    "tdp": "Power, W",
}

LEGEND = (
    "Peaks are dense; GB are decimal; links and networks count one direction; a link is all links of one chip.",
    "Not marked: a datasheet, a file of the maker, a reading of a device or a page that quotes one says so. "
    "Derived: worked out from such figures. Announced: preliminary, no one could measure it. "
    "Unverified: in circulation, without a good source. "
    "None: the chip does not have it. Not published: nobody says.",
)


def number(value):
    """Return a number with a comma per thousand and at most two decimals.

    >>> number(10066.3), number(85.52081), number(6.25), number(300.0)
    ('10,066.3', '85.52', '6.25', '300')
    """
    return f"{value:,.2f}".rstrip("0").rstrip(".")


def chips_table():
    """Return the Table of all chips: main figures, marks on those that are not sourced, numbered sources."""
    order = {key: number for number, key in enumerate(sources(), 1)}
    rows = []
    for chip in map(chip_named, CHIPS):
        used = sorted({key for field in COLUMNS for key in chip.figure(field).source}, key=order.get)
        links = tuple((str(order[k]), f"#source-{k}", f"source {order[k]}: {sources()[k].title}") for k in used)
        rows.append((chip.name, *(_figure(chip, field) for field in COLUMNS), Cell("", links=links)))
    return Table(
        caption=f"The {len(rows)} chips of this course: figures of one chip",
        heads=("Chip", *COLUMNS.values(), "Sources"),
        rows=tuple(rows),
        compact=True,
        notes=LEGEND,
        references=tuple((f"source-{s.key}", s.title, s.url) for s in sources().values()),
    )


def chip_table(chip):
    """Return the Table of one chip: every figure with its status, what to know about it, and its sources.

    chip : id or Chip. Errors: ValueError for an unknown chip.
    """
    chip = chip_named(chip)
    rows = []
    for field, kind in FIELDS.items():
        figure = chip.figure(field)
        links = tuple((sources()[key].title, sources()[key].url, "") for key in figure.source)
        title = kind.title[0].upper() + kind.title[1:] + (f", {kind.printed}" if kind.printed else "")
        rows.append((title, _shown(chip, field), figure.status, figure.note, Cell("", links=links)))
    return Table(chip.name, ("Figure", "Value", "Status", "Note", "Sources"), tuple(rows))


def _shown(chip, field):
    figure = chip.figure(field)
    if figure.value is None:
        return "none" if figure.status == "absent" else STATUSES[figure.status]
    return number(figure.value / FIELDS[field].si)


def _figure(chip, field):
    status = chip.figure(field).status
    return Cell(_shown(chip, field), status if status in ("derived", "announced", "unverified") else "")


MODEL_HEADS = (
    "Model",
    "Layers",
    "Parameters, billion",
    "Active, billion",
    "First token, kB",
    "Slope, kB per token",
    "State, MB",
)

MODEL_NOTES = (
    "Counted from each config, which the name links to: the text model, without a vision tower and layers for "
    "multi-token prediction.",
    "First token, slope and state are bytes of one sequence in BF16 (recurrent states in FP32, unless the config says "
    "otherwise): what its first token takes, what each further one takes once windows are full, and what mixers keep "
    "whatever its length.",
)


def models_table():
    """Return the Table of the models that come with the course: layers, counts, and where each config is from."""
    with (resources.files("cotune") / "data/models/sources.csv").open(encoding="utf-8") as file:
        repositories = {row["name"]: row["repository"] for row in csv.DictReader(file)}
    rows = tuple(_model_row(model_named(name), name, repositories[name]) for name in model_names())
    return Table(
        caption=f"The {len(rows)} models that come with the course",
        heads=MODEL_HEADS,
        rows=rows,
        notes=MODEL_NOTES,
    )


def _model_row(model, name, repository):
    without, whole = (count.active_parameters(model, embedding=e).total / GIGA for e in (False, True))
    cache = count.kv_bytes_first_token(model).total / KILO, count.kv_bytes_per_token(model).total / KILO
    return (
        Cell("", links=((name, f"https://huggingface.co/{repository}", f"{name}, its config"),)),
        layers_text(model),
        number(count.parameters(model).total / GIGA),
        Cell(number(without), f"{number(whole)} with embedding"),
        *map(number, cache),
        number(count.state_bytes(model).total / MEGA),
    )


def layers_text(model):
    """Say in a few words which kinds of layers a model has, the commonest first.

    >>> layers_text(model_named("mixtral-8x7b")), layers_text(model_named("gpt-oss-120b"))
    ('32 Full with MoE', '18 Window with MoE, 18 Full with MoE')
    """
    kinds = Counter(
        " with ".join(type(part).__name__ for part in (layer.attention, layer.ffn) if part) for layer in model.layers
    )
    return ", ".join(f"{many} {kind}" for kind, many in kinds.most_common())
