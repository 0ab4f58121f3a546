"""How the rows of a rewrite are put into Parquet."""

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow.parquet as pq

from zadapter.names import Parts

KEPT = 256
"""Characters of a key, or bytes of a bound in a footer, that are kept at most: texts that share a
long prefix, as URLs do, would be all alike with fewer."""
SEEN = 20_000
"""Values after which Parquet's writers judge whether a dictionary pays: those of a first page."""


@dataclass(frozen=True, kw_only=True)
class Encoding:
    """What a backend tells its format's writer; the rest is the table's to say."""

    row_group: int | None = None
    """Rows in a row group, at most; None leaves that to the format."""
    plain: frozenset[Parts] = frozenset()
    """Columns written without a dictionary."""

    def settings(self, physical: Mapping[Parts, Parts]) -> dict[str, str]:
        """Return what Spark hands on to its Parquet writer, as options or the session's settings.

        Args:
            physical: How files name the columns, where they do it differently.
        """
        # a footer has no bounds at all where whole values are too long for it
        said = {"parquet.statistics.truncate.length": str(KEPT)}
        if self.row_group is not None:
            said["parquet.block.row.count.limit"] = str(self.row_group)
        for parts in self.plain:
            path = ".".join(physical.get(parts, parts))
            said[f"parquet.enable.dictionary#{path}"] = "false"
        return said


def dictionary_given_up(footer: pq.FileMetaData) -> frozenset[str]:
    """Return the columns whose writer has tried a dictionary and found that it does not pay.

    Parquet's writers give a dictionary up after the first page, if it has saved no bytes. With
    row groups an eighth in size, that is eight times as many tries, each dearer than the writing
    itself: 3.2 s of 18 s, lineitem SF1.

    Args:
        footer: The footer of a file with the same rows, or rows like them.

    Returns:
        Paths in the file, parts joined by dots.
    """
    chunks = [
        column
        for group in map(footer.row_group, range(footer.num_row_groups))
        for column in map(group.column, range(footer.num_columns))
    ]
    tried = {c.path_in_schema for c in chunks if c.num_values >= SEEN}
    used = {c.path_in_schema for c in chunks if c.has_dictionary_page}
    # where nothing has a dictionary, the writer did not try
    return frozenset(tried - used) if used else frozenset()
