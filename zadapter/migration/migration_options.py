"""Options of ``migrate``, with the checks that need no table and no Spark."""

from dataclasses import dataclass
from os import PathLike

from zadapter.backend import plugins
from zadapter.backend.contract import Factory
from zadapter.backend.format import Format
from zadapter.errors import MissingBackendError, UsageError
from zadapter.planning.options import (
    AUTO,
    By,
    Options,
    check_flags,
    check_layout,
    check_table,
    default_of,
)
from zadapter.report.migration_report import Mode

_OF_LAYOUT = ("curve", "target_file_size", "row_groups")


@dataclass(frozen=True, kw_only=True)
class MigrationOptions:
    """Arguments of ``migrate``, as the caller passed them.

    Raises:
        UsageError: An argument is invalid for every table.
        MissingBackendError: A format is unknown.
    """

    table: str | PathLike[str]
    to: str | Factory
    target: str | PathLike[str]
    backend: str | Factory | None = None
    mode: str = "copy"
    by: By | None = None
    curve: str = "adaptive"
    target_file_size: str | int = AUTO
    row_groups: int = 16
    follow: bool = False
    dry_run: bool = False

    def __post_init__(self) -> None:
        choices = [mode.value for mode in Mode]
        if self.mode not in choices:
            raise UsageError(f"unknown mode {self.mode!r}; expected one of: {', '.join(choices)}")
        check_flags(follow=self.follow, dry_run=self.dry_run)
        if self.by is not None and (self.follow or self.mode == Mode.IN_PLACE.value):
            raise UsageError(
                "by= rewrites all rows; omit it, or omit follow=True and mode='in_place'"
            )
        check_layout(self.curve, self.target_file_size, self.row_groups)
        stated = [name for name in _OF_LAYOUT if getattr(self, name) != default_of(name)]
        if self.by is None and stated:
            raise UsageError(
                f"{', '.join(f'{name}=' for name in stated)} without by= has no effect, since the "
                "table's layout is kept; pass by= as well, or optimize the new table"
            )
        if self.follow and self.mode != Mode.COPY.value:
            raise UsageError(
                f"follow=True copies the appended rows; mode={self.mode!r} has no effect, omit it"
            )
        _ = self.names, self.layout
        if self.backend is not None:
            _check_format("backend", self.backend)
        _check_format("to", self.to)

    @property
    def names(self) -> tuple[str, str]:
        """Paths or identifiers of the old and the new table, as text."""
        return check_table(self.table), check_table(self.target)

    @property
    def layout(self) -> Options | None:
        """Options of the new layout; None: keep the table's layout."""
        if self.by is None:
            return None
        return Options(
            table=self.table,
            by=[self.by] if isinstance(self.by, str) else self.by,
            curve=self.curve,
            target_file_size=self.target_file_size,
            row_groups=self.row_groups,
        )


def _check_format(argument: str, given: object) -> None:
    if isinstance(given, str):
        try:
            plugins.check(given)
        except MissingBackendError as error:
            raise MissingBackendError(f"{argument}= (--{argument}): {error}") from error
    elif not isinstance(getattr(given, "format", None), Format):
        raise UsageError(f"{argument}= must be a format name or a backend class, not {given!r}")
