"""Results as readable facts, in terminals and notebooks alike."""

from collections.abc import Mapping
from typing import Any

from zadapter.base.printable import printable


class Facts:
    """A result that is shown as facts, one per line."""

    __slots__ = ()

    def facts(self) -> Mapping[str, str]:
        """Return the result as readable facts, by name."""
        raise NotImplementedError

    def __str__(self) -> str:
        return aligned(self.facts())

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:  # noqa: ARG002 - IPython's
        printer.text(str(self))


def aligned(facts: Mapping[str, str]) -> str:
    """Format facts as text that any terminal can print, one per line, with aligned values."""
    width = max(len(name) for name in facts)
    return printable("\n".join(f"{name:<{width}}  {value}" for name, value in facts.items()))
