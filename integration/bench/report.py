"""A run's results, saved: JSON, Markdown and plots."""

import json
import os
import platform
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pyspark
from matplotlib.figure import Figure

from integration.bench.contenders import OURS
from integration.bench.race import Result
from integration.bench.results import EXPLAINED, HEADS, Goal, Races, markdown, row, to_copy
from integration.bench.scaling import Point
from integration.bench.session import SETTINGS
from zadapter.spark.settings import FORMATS

Value = Callable[[Result, Mapping[str, Result]], float | None]
PACKAGES = ("zadapter", "delta-spark", "deltalake", "pyiceberg", "pyarrow", "numpy", "duckdb")


def about(command: Sequence[str]) -> dict[str, object]:
    """Return what ran, on what, and how it was set."""
    return {
        "command": "python -m integration.bench " + shlex.join(command),
        "versions": {
            "python": platform.python_version(),
            "pyspark": pyspark.__version__,
            **{name: version(name) for name in PACKAGES},
            "jars": [jar for format_ in FORMATS.values() for jar in format_.packages],
        },
        "machine": {
            "cpus": os.cpu_count(),
            "processor": platform.processor() or platform.machine(),
            "memory, GB": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 30,
            "system": platform.platform(),
        },
        "settings": SETTINGS,
    }


def save(
    folder: Path,
    said: Mapping[str, object],
    found: Races,
    goals: Sequence[Goal],
    points: Sequence[Point],
    metadata: Mapping[str, float],
) -> None:
    """Write ``results.json``, ``results.md``, ``seconds.png`` and ``shares.png``."""
    folder.mkdir(parents=True, exist_ok=True)
    every = [result for race in found.values() for result in race.values()]
    values = {
        **said,
        "results": [asdict(result) for result in every],
        "goals": [asdict(goal) for goal in goals],
        "scaling": [asdict(point) for point in points],
        "metadata": metadata,
    }
    (folder / "results.json").write_text(json.dumps(values, indent=1, default=_plain))
    text = [f"`{said['command']}`\n", goals_table(goals), results_table(found), EXPLAINED, ""]
    (folder / "results.md").write_text("\n".join(text))
    _plots(folder, found)


def results_table(found: Races) -> str:
    """Write all results as a Markdown table."""
    lines = [row(result, race) for race in found.values() for result in race.values()]
    return markdown(HEADS, lines)


def goals_table(goals: Iterable[Goal]) -> str:
    """Write the goals as a Markdown table."""
    lines = [[g.what, g.asked, g.found, "yes" if g.reached else "no"] for g in goals]
    return markdown(["goal", "asked", "found", "reached"], lines)


def _plain(value: object) -> object:
    if isinstance(value, np.ndarray):
        return [round(each, 6) for each in value.tolist()]
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(type(value).__name__)


def _plots(folder: Path, found: Races) -> None:
    if not found:
        return
    for name, label, value in (
        ("seconds", "seconds, x plain copy", to_copy),
        ("shares", "share of rows in files to open", _share),
    ):
        _bars(folder / f"{name}.png", found, label, value)


def _share(result: Result, _: Mapping[str, Result]) -> float | None:
    return float(result.shares.in_files.mean())


def _bars(path: Path, found: Races, label: str, value: Value) -> None:
    figure = Figure(figsize=(9, 2.2 * len(found)), layout="constrained")
    axes = figure.subplots(len(found), 1, squeeze=False)
    for axis, (key, race) in zip(axes.flat, found.items(), strict=True):
        known = {name: value(result, race) for name, result in race.items()}
        known = {name: each for name, each in known.items() if each is not None}
        colours = ["tab:orange" if name == OURS else "tab:gray" for name in known]
        axis.barh(list(known), list(known.values()), color=colours)
        axis.invert_yaxis()
        axis.set_title(f"{key[0]}, {key[1]}", loc="left")
        axis.set_xlabel(label)
    figure.savefig(path)
