"""The file that a row comes from, by the name that Spark's ``input_file_name`` shows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from zadapter.backend.contract import Backend
from zadapter.base.locations import path_of
from zadapter.table.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class RowFiles:
    """Files of a snapshot, by their names in rows.

    A name is compared as it is written where the log's paths are names, since a path may contain
    text that looks like an escape: Iceberg's ``p=a%3Db`` is no ``p=a=b``. Where names are URIs,
    they are unescaped once, since the log and Spark may escape other characters.
    """

    numbers: Mapping[str, int]
    """Number of each file by its name in comparable form."""
    by_path: bool
    count: int

    @property
    def is_ambiguous(self) -> bool:
        """Whether two files have the same name, as in different stores."""
        return len(self.numbers) < self.count

    def number(self, name: str) -> int | None:
        """Return the number of the file that ``input_file_name`` calls *name*, if it is one."""
        return self.numbers.get(name if self.by_path else path_of(name))


def row_files(backend: Backend, snapshot: Snapshot, paths: Sequence[str]) -> RowFiles:
    """Return the files with *paths* in the file table, numbered in this order."""
    by_path = backend.format.rows_show_paths
    names = paths if by_path else map(path_of, backend.uris(snapshot, paths))
    numbers = {name: number for number, name in enumerate(names)}
    return RowFiles(numbers=numbers, by_path=by_path, count=len(paths))
