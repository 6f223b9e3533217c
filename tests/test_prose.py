"""Numbers as people read them."""

from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotune.teach import prose


@given(st.floats(1e-12, 1e15), st.integers(2, 6))
def test_number_keeps_its_digits(value, digits):
    text = prose.number(value, digits)
    assert "e" not in text
    assert float(text.replace(",", "")) == pytest.approx(value, rel=0.5001 * 10 ** (1 - digits))


def test_table_is_markdown_with_its_numbers():
    with mock.patch("IPython.display.display") as display:
        prose.table(["a", "b"], [["x", 1], ["y", 2]])
    shown = display.call_args.args[0]
    assert shown["text/plain"] == shown["text/markdown"] == "| a | b |\n| :-- | --: |\n| x | 1 |\n| y | 2 |"


def test_rules_are_told_with_their_caveat():
    with mock.patch("IPython.display.display") as display:
        prose.state_rule(9)
    assert "*But:*" in display.call_args.args[0]["text/plain"]
