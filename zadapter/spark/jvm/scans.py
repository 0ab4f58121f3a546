"""Files that Spark's plan of a filtered scan reads."""

from collections.abc import Iterator
from typing import Any

_ADAPTIVE = "AdaptiveSparkPlanExec"


def leaves_of(rows: Any) -> Iterator[Any]:
    """Yield the operators of the physical plan of a DataFrame that read something.

    Args:
        rows: The DataFrame. It is planned, but not executed.
    """
    pending = [rows._jdf.queryExecution().executedPlan()]  # noqa: SLF001 - plans have no public door
    while pending:
        plan = pending.pop()
        if plan.getClass().getSimpleName() == _ADAPTIVE:
            pending.append(plan.initialPlan())
            continue
        found = plan.collectLeaves()
        operators = [found.apply(number) for number in range(found.size())]
        if len(operators) == 1 and operators[0].getClass().getSimpleName() == _ADAPTIVE:
            pending.append(operators[0])
        else:
            yield from operators


def scanned_uris(rows: Any) -> list[str]:
    """Return the URIs of the files that scans of Spark's own file sources read."""
    found: dict[str, None] = {}
    for leaf in leaves_of(rows):
        if leaf.getClass().getSimpleName() != "FileSourceScanExec":
            continue  # local rows: the condition is false, or there are no files
        # partitions are pruned and files chosen when the operator makes its RDD
        parts = leaf.inputRDDs().head().filePartitions()
        for number in range(parts.size()):
            found |= {str(file.urlEncodedPath()): None for file in parts.apply(number).files()}
    return list(found)
