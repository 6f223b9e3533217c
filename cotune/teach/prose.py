"""Sentences and small tables whose numbers come from code, shown as prose in the notebook and in the page."""

from decimal import Decimal

from cotune.rules import rule


def say(text):
    """Show Markdown text. The stored notebook keeps it, so strict nbval compares every number in it."""
    from IPython.display import display

    display({"text/markdown": text, "text/plain": text}, raw=True)


def table(head, rows):
    """Show a Markdown table; the first column is left aligned, the others right."""
    lines = [head, [":--"] + ["--:"] * (len(head) - 1), *rows]
    say("\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines))


def state_rule(id):
    """Show a rule of the course: its sentence, where it stops being true, and the number to check."""
    r = rule(id)
    say(f"> **{r.sentence}**\n>\n> *But:* {r.caveat}\n>\n> *Check:* {r.number_to_check}.")


def number(value, digits=3):
    """Return a number as people read it: at most `digits` significant digits, thousands apart, no exponent.

    >>> number(616.8094), number(1363148.8), number(0.000043125), number(1875.0, 4), number(30.0)
    ('617', '1,360,000', '0.0000431', '1,875', '30')
    """
    rounded = Decimal(f"{value:.{digits - 1}e}")
    text = f"{rounded:,f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
