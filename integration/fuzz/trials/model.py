"""Expected rows of a table after changes."""

from collections.abc import Callable, Iterable
from random import Random

from integration.fuzz.trials.tally import Row


class Model:
    """Rows with the key ``a``, a partition ``p`` derived from it, and a string ``b``."""

    def __init__(self, draw: Random) -> None:
        self.draw, self.rows = draw, dict[int, Row]()
        self.next = 0

    def fresh(self, count: int) -> list[Row]:
        """Draw rows with new keys."""
        keys = range(self.next, self.next + count)
        self.next += count
        return self.put(keys)

    def put(self, keys: Iterable[int]) -> list[Row]:
        """Draw rows with given keys, which replace existing ones."""
        made = [{"a": key, "p": key % 3, "b": f"b{self.draw.randrange(1_000)}"} for key in keys]
        self.rows |= {row["a"]: row for row in made}
        return made

    def some(self, count: int) -> list[int]:
        """Draw existing keys."""
        return self.draw.sample(sorted(self.rows), min(count, len(self.rows)))

    def drop(self, gone: Callable[[Row], bool]) -> None:
        """Delete the rows that match a condition."""
        self.rows = {key: row for key, row in self.rows.items() if not gone(row)}

    def change(self, which: Callable[[Row], bool], text: str) -> None:
        """Change the strings of some rows."""
        for key, row in self.rows.items():
            if which(row):
                self.rows[key] = row | {"b": text}

    def listed(self) -> list[Row]:
        """Return all rows."""
        return list(self.rows.values())
