"""What the parts of a condition exclude, file by file, and why files are kept."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from zadapter.base.names import NameParts, join
from zadapter.base.quantities import show_count
from zadapter.base.ranks import Ints
from zadapter.predicates.predicate import IsNull, Not, Predicate
from zadapter.predicates.predicate import columns as columns_of
from zadapter.predicates.pruning import matching
from zadapter.predicates.texts import bounds_text, causes, conjuncts, text
from zadapter.table.column_bounds import Mask, counts, gather

EVERY_FILE = "every file may hold such rows"
MAY_MATCH = "the bounds allow matching rows"
ALWAYS = "the condition excludes no rows"
NO_ROWS = "the file has no rows"


@dataclass(frozen=True, slots=True)
class ConjunctFacts:
    """A part of a condition; all parts must hold."""

    text: str
    excluded: int
    """Number of files that this part alone excludes."""
    why: str
    """Why it excludes no more files; empty if nothing prevents it."""


def conjunct_facts(predicate: Predicate, files: pa.Table) -> tuple[ConjunctFacts, ...]:
    """Return what each part of a condition excludes."""
    found = [
        (
            part,
            ConjunctFacts(text(part), int((~matching(part, files)).sum()), _hindrance(part, files)),
        )
        for part in conjuncts(predicate)
    ]
    # Spark adds IS NOT NULL to most conditions
    telling = [facts for part, facts in found if facts.excluded or not _is_not_null(part)]
    return tuple(telling or [facts for _, facts in found])


def _is_not_null(part: Predicate) -> bool:
    return isinstance(part, Not) and isinstance(part.part, IsNull)


def find_unused(predicate: Predicate, files: pa.Table) -> tuple[str, ...]:
    """Return the parts of a condition that exclude none of *files*, and why."""
    return tuple(
        f"{part.text}: {part.why or EVERY_FILE}"
        for part in conjunct_facts(predicate, files)
        if not part.excluded
    )


def _hindrance(part: Predicate, files: pa.Table) -> str:
    """Return what keeps a part of a condition from excluding files."""
    reasons = causes(part)
    for column in sorted(columns_of(part)):
        unknown = int(without_bounds(files, column).sum())
        if unknown:
            reasons.append(f"{show_count(unknown, 'files')} without bounds of {join(column)}")
    return "; ".join(reasons)


def without_bounds(files: pa.Table, column: NameParts) -> Mask:
    """Return which files have rows with values of *column*, but not both of its bounds."""
    evidence = gather(files, column)
    low, high = (
        bound.is_null().to_numpy(zero_copy_only=False) for bound in (evidence.low, evidence.high)
    )
    return np.asarray(evidence.regular & (low | high), np.bool_)


def explain_files(predicate: Predicate, files: pa.Table) -> pa.Table:
    """Return, for each file, whether it is kept, and why.

    Returns:
        ``path``, ``size`` and ``rows`` of each file; whether it is ``kept``; ``why`` as text; the
        ``part`` of the condition that rules it out, and its ``column``, with the bounds ``low`` and
        ``high``, as text; null for kept files.
    """
    parts = conjuncts(predicate)
    kept = matching(predicate, files)
    by_part = _first(parts, files)
    by_part = np.where(kept, -1, by_part)
    names = [sorted(columns_of(part)) for part in parts]
    columns = {
        "path": files["path"],
        "size": files["size"],
        "rows": files["rows"],
        "kept": pa.array(kept),
        "why": _decode_texts(*_reasons(parts, files, kept, by_part)),
        "part": _decode_texts(by_part, [text(part) for part in parts]),
        "column": _decode_texts(by_part, [join(each[0]) if each else "" for each in names]),
    }
    low, high = _bounds(files, names, by_part)
    return pa.table({**columns, "low": low, "high": high})


def _first(parts: Sequence[Predicate], files: pa.Table) -> Ints:
    """Return the number of the first part that excludes each file, or -1."""
    found = np.full(files.num_rows, -1)
    for number, part in reversed(list(enumerate(parts))):
        found = np.where(matching(part, files), found, number)
    return found


def _reasons(
    parts: Sequence[Predicate], files: pa.Table, kept: Mask, by_part: Ints
) -> tuple[Ints, list[str]]:
    """Return the number of each file's reason, and the reasons."""
    texts = [f"ruled out by {text(part)}" for part in parts]
    hindered = list(dict.fromkeys(cause for part in parts for cause in causes(part)))
    usable = any(columns_of(part) for part in parts)
    default = MAY_MATCH if usable else "; ".join(hindered) or ALWAYS
    if usable and hindered:
        default = f"{default}; not used: {'; '.join(hindered)}"
    codes = np.where(kept, len(texts), by_part)
    texts.append(default)
    for column in sorted({column for part in parts for column in columns_of(part)}):
        codes = np.where(kept & without_bounds(files, column), len(texts), codes)
        texts.append(f"no bounds of {join(column)}")
    empty = counts(files, "rows") == 0
    return np.where(empty, len(texts), codes), [*texts, NO_ROWS]


def _decode_texts(codes: Ints, texts: Sequence[str]) -> pa.Array:
    indices = pa.array(codes.astype(np.int32), mask=codes < 0)
    return pa.DictionaryArray.from_arrays(indices, pa.array(texts, pa.string())).cast(pa.string())


def _bounds(
    files: pa.Table, names: Sequence[Sequence[NameParts]], by_part: Ints
) -> tuple[pa.Array, pa.Array]:
    """Return the bounds of the column that rules each file out, as text."""
    sides = []
    for side in ("low", "high"):
        shown = np.full(files.num_rows, None, object)
        for number, columns in enumerate(names):
            at = np.flatnonzero(by_part == number)
            if not len(at) or not columns:
                continue
            bound = getattr(gather(files, columns[0]), side).take(pa.array(at))
            if not pa.types.is_null(bound.type):
                shown[at] = bounds_text(bound).to_pylist()
        sides.append(pa.array(shown, pa.string()))
    return sides[0], sides[1]
