"""Examples in docstrings are true."""

import doctest
from importlib import import_module

import pytest

from tests.test_architecture import SHIPPED, module_name

WITH_EXAMPLES = [
    module_name(path) for path in SHIPPED if ">>> " in path.read_text(encoding="utf-8")
]


@pytest.mark.parametrize("module", WITH_EXAMPLES)
def test_examples_run(module):
    """Each prints what its docstring shows."""
    found = doctest.testmod(import_module(module))

    assert found.attempted > 0
    assert found.failed == 0
