"""The examples in the docstrings are true."""

import doctest
import importlib
import pkgutil

import pytest

import cotune

MODULES = [module.name for module in pkgutil.walk_packages(cotune.__path__, "cotune.")]


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples(name):
    result = doctest.testmod(importlib.import_module(name))
    assert result.failed == 0


def test_the_examples_are_found():
    modules = [importlib.import_module(f"cotune.{name}") for name in ("arguments", "formats", "gemm", "roofline")]
    assert all(doctest.testmod(module).attempted for module in modules)
