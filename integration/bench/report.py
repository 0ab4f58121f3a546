"""Saved results of a run: JSON, Markdown and plots."""

import json
import os
import platform
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pyspark
from matplotlib.figure import Figure

from integration.bench.appends import goals as appends
from integration.bench.appends.ageing import Aged
from integration.bench.appends.plot import curves
from integration.bench.contenders import OURS
from integration.bench.measures import scaling
from integration.bench.race import Result
from integration.bench.results import (
    EXPLAINED,
    HEADS,
    Goal,
    Races,
    goals,
    markdown,
    row,
    to_copy,
)
from integration.bench.session import CORES, SETTINGS
from zadapter.backend.plugins import formats

Value = Callable[[Result, Mapping[str, Result]], float | None]
PACKAGES = ("zadapter-spark", "delta-spark", "deltalake", "pyiceberg", "pyarrow", "numpy", "duckdb")


@dataclass
class Run:
    """Results of a run so far.

    Attributes:
        command: Arguments of the command.
        folder: Folder for the results, if any.
        rounds: Scale of tables, number of files, and number of rounds.
        found: All results.
        failed: Reasons of failed contenders, by workload, format and contender.
        moved: Goals of migrations and of first calls.
        points: Growth of time.
        aged: Results of tables that aged.
        metadata: Cost of planning and logs alone.
    """

    command: Sequence[str]
    folder: Path | None
    rounds: Mapping[str, float] = field(default_factory=dict[str, float])
    found: Races = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict[str, str])
    moved: list[Goal] = field(default_factory=list[Goal])
    points: list[scaling.Point] = field(default_factory=list[scaling.Point])
    aged: list[Aged] = field(default_factory=list[Aged])
    metadata: Mapping[str, float] = field(default_factory=dict[str, float])

    def goals(self) -> list[Goal]:
        """Return all goals with their results."""
        aged = appends.goals(self.aged)
        return [*goals(self.found), *scaling.goals(self.points), *self.moved, *aged]

    def remarks(self) -> list[str]:
        """Return the results that no table contains."""
        left_out = [f"left out, since it failed: {who}: {why}" for who, why in self.failed.items()]
        return [*left_out, *(f"{name}: {value}" for name, value in self.metadata.items())]

    def keep(self) -> None:
        """Write ``results.json``, ``results.md``, and plots."""
        if self.folder is None:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        said = {**about(self.command), "rounds": self.rounds}
        values = {
            **said,
            "results": [asdict(each) for race in self.found.values() for each in race.values()],
            "failed": self.failed,
            "goals": [asdict(goal) for goal in self.goals()],
            "scaling": [asdict(point) for point in self.points],
            "aged": [asdict(each) for each in self.aged],
            "metadata": self.metadata,
        }
        (self.folder / "results.json").write_text(json.dumps(values, indent=1, default=_plain))
        tables = [goals_table(self.goals())]
        if self.found:
            tables += [results_table(self.found), EXPLAINED]
        if self.aged:
            tables += [appends.aged_table(self.aged), appends.EXPLAINED]
            curves(self.folder / "appends.png", self.aged)
        text = [
            f"`{said['command']}`\n",
            *tables,
            "",
            *(f"* {each}" for each in [*map(appends.course, self.aged), *self.remarks()]),
            "",
        ]
        (self.folder / "results.md").write_text("\n".join(text))
        _plots(self.folder, self.found)


def about(command: Sequence[str]) -> dict[str, object]:
    """Return versions, time, machine and settings of the run."""
    return {
        "command": "python -m integration.bench " + shlex.join(command),
        "time": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "versions": {
            "python": platform.python_version(),
            "pyspark": pyspark.__version__,
            **{name: version(name) for name in PACKAGES},
            "jars": [jar for f in formats().values() if f.library for jar in f.library.packages],
        },
        "machine": {
            "cpus": os.cpu_count(),
            "processor": platform.processor() or platform.machine(),
            "memory, GB": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 30,
            "system": platform.platform(),
        },
        "settings": {"spark.master": f"local[{CORES}]", **SETTINGS},
    }


def results_table(found: Races) -> str:
    """Return all results as a Markdown table."""
    lines = [row(result, race) for race in found.values() for result in race.values()]
    return markdown(HEADS, lines)


def goals_table(every: Iterable[Goal]) -> str:
    """Return the goals as a Markdown table."""
    lines = [[g.what, g.asked, g.found, "yes" if g.reached else "no"] for g in every]
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
