"""What queries read that are like none of the log: whole templates are left out, and judged by.

The template of a filter is which columns it compares, and how. Queries of templates that a log
lacks read a layout that was fitted to the log more often than a layout by the most filtered columns
(``python -m integration.bench.held_out``). So the templates of the log are left out part by part.
What they read of layouts that are fitted to the others is what queries of new templates are
expected to read.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from zadapter.base.names import NameParts
from zadapter.base.quantities import show_count
from zadapter.layout.filters import Filter, Range

PARTS = 4
"""Number of parts of the templates, each of which is left out once."""
FEWEST_TEMPLATES = 5
"""Minimum number of templates by which fitted layouts are judged. With fewer, those that are left
do not tell what queries of the others read."""
FEWEST_FILTERS = 20
"""Minimum number of filters by which fitted layouts are judged."""
MOST_FILTERS = 120
"""Maximum number of filters that layouts are fitted to and judged by, about."""

Template = frozenset[frozenset[tuple[NameParts, str]]]


@dataclass(frozen=True, slots=True)
class Read:
    """Mean shares of the rows in files, and in row groups, that filters cannot skip.

    The second is None where row groups are unknown.
    """

    files: float
    row_groups: float | None


Reader = Callable[[Sequence[Filter], Sequence[Filter]], Read]
"""Returns what the second filters read of a layout that is fitted to the first ones."""


def template_of(asked: Filter) -> Template:
    """Return which columns a filter compares, and how: the same for all parameters."""
    return frozenset(frozenset((part.column, _kind(part)) for part in box) for box in asked.boxes)


def _kind(part: Range) -> str:
    if part.low is None or part.high is None:
        return "up to" if part.low is None else "from"
    return "value" if part.low == part.high else "between"


def group_by_template(filters: Sequence[Filter]) -> list[list[Filter]]:
    """Return the filters of each template; the heaviest template first."""
    found: dict[Template, list[Filter]] = {}
    for each in filters:
        found.setdefault(template_of(each), []).append(each)
    return sorted(found.values(), key=lambda same: -sum(each.weight for each in same))


def why_too_thin(filters: Sequence[Filter]) -> str:
    """Return why filters do not tell what new queries read; empty if they do."""
    filters = list({each.boxes: each for each in filters}.values())
    templates = len(group_by_template(filters))
    if templates < FEWEST_TEMPLATES:
        kinds = "one kind" if templates == 1 else f"{templates} kinds"
        return f"the log has {kinds} of filters, and {FEWEST_TEMPLATES} are needed"
    if len(filters) < FEWEST_FILTERS:
        return f"the log has {show_count(len(filters), 'filters')}, and {FEWEST_FILTERS} are needed"
    return ""


def expect(filters: Sequence[Filter], readers: Mapping[str, Reader]) -> dict[str, Read]:
    """Return what queries of new templates are expected to read of layouts, by name.

    Each template counts as much as any other: nobody knows how frequent a new one will be.

    Args:
        filters: The filters of a log that is not too thin.
        readers: The layouts.
    """
    templates = group_by_template(filters)
    most = max(1, MOST_FILTERS // len(templates))
    templates = [_thin_out(same, most) for same in templates]
    found: dict[str, list[Read]] = {name: [] for name in readers}
    counts = []
    for part in range(PARTS):
        left_out = templates[part::PARTS]
        known = [each for at, same in enumerate(templates) if at % PARTS != part for each in same]
        asked = [replace(each, weight=1 / len(same)) for same in left_out for each in same]
        counts.append(len(left_out))
        for name, reader in readers.items():
            found[name].append(reader(known, asked))
    return {name: _average(reads, counts) for name, reads in found.items()}


def _thin_out(same: Sequence[Filter], most: int) -> list[Filter]:
    """Return some of the filters of a template, evenly spread, with the weight of all."""
    kept = same[:: -(-len(same) // most)]
    total = sum(each.weight for each in same) / sum(each.weight for each in kept)
    return [replace(each, weight=each.weight * total) for each in kept]


def _average(reads: Sequence[Read], counts: Sequence[int]) -> Read:
    def mean(shares: Sequence[float]) -> float:
        return sum(s * count for s, count in zip(shares, counts, strict=True)) / sum(counts)

    groups = [each.row_groups for each in reads if each.row_groups is not None]
    return Read(
        mean([each.files for each in reads]),
        mean(groups) if len(groups) == len(reads) else None,
    )
