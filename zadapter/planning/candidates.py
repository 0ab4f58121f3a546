"""What could be rewritten in each of many parts of a table, computed for all of them at once.

The candidates of a part are its raw files with ever more of its runs, by rows; the last one is
everything. There may be 100 000 partitions: so nothing is computed part by part, except where files
are predicted from their boxes.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow.compute as pc

from zadapter.base.arrays import take_rows
from zadapter.base.ranks import Ints
from zadapter.layout.predict import Floats
from zadapter.planning.merges import Gain, Reason, Rewrite, pays, worth
from zadapter.planning.partition_parts import FileArrays, PartitionPart
from zadapter.planning.reading import ByBoxes, Mask, Members, grain, opening, spread

STEP = 1.25
"""Growth in rows from a candidate to the next."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """Candidates of many parts, by part, smallest first."""

    runs: "_SortedRuns" = field(repr=False)
    part: Ints
    """Number of the part of each."""
    place: Ints
    """Place of the largest run of each."""
    is_last: Mask
    """Whether each is everything in its part."""
    sums: Floats
    """Rows, bytes, number of files, and what filters read of these files now, of each."""
    fresh: Floats
    """Number of rows that are not in the largest run among the files."""
    raw: Floats
    """Number of rows that are in no run."""
    cut_into: Ints
    row_groups: Ints
    after: Floats
    """What filters read of the files that replace them."""
    read: Floats
    """What they read of the whole part, as it is."""

    def pays(self, read: Floats) -> Mask:
        """Return which are worth their price, if filters read so much of their parts."""
        return pays(self._saved, read, self.fresh, self.sums[:, 0] - self.raw)

    def best(self, among: Mask, read: Floats) -> dict[int, int]:
        """Return the number of the candidate of most worth in each part, if there is one.

        Args:
            among: The candidates to choose from.
            read: What filters read of the part of each candidate.
        """
        merged = self.sums[:, 0] - self.raw
        some = np.flatnonzero(among)
        by_worth = -worth(self._saved, read, self.fresh, merged)[some]
        some = some[np.lexsort((by_worth, self.part[some]))]
        parts, first = np.unique(self.part[some], return_index=True)
        return dict(zip(parts.tolist(), some[first].tolist(), strict=True))

    @property
    def _saved(self) -> Floats:
        return self.sums[:, 3] - self.after

    def rewrite(self, number: int) -> Rewrite:
        """Return one of the candidates."""
        part, place, files = int(self.part[number]), int(self.place[number]), self.runs.files
        judged = files.parts[part]
        rows, size, _, before = self.sums[number].tolist()
        cut_into, after = int(self.cut_into[number]), float(self.after[number])
        merged = Reason.ANEW if self.is_last[number] else Reason.MERGED
        only_raw = rows == self.raw[number]
        return Rewrite(
            table=files.facts.files,
            members=files.at[files.slice_of(part)][self.runs.select_until(part, place)],
            root=judged.root,
            reason=Reason.NEW if only_raw else merged,
            cut_into=cut_into,
            row_groups=int(self.row_groups[number]),
            ahead=self.runs.ahead(part, place),
            bytes=int(size),
            rows=int(rows),
            raw=int(self.raw[number]),
            fresh=int(self.fresh[number]),
            trunk=judged.trunk and judged.trunk.shorten(cut_into),
            cold=files.facts.request.cold,
            gain=Gain(before=before, after=after, read=float(self.read[number])),
        )


def candidates(
    facts: FileArrays, parts: Sequence[PartitionPart], by_boxes: Collection[int]
) -> Candidates:
    """Return what could be rewritten in each part.

    Args:
        facts: The file table.
        parts: The parts, none of which is empty.
        by_boxes: Numbers of the parts that are predicted from the boxes of their files.
    """
    runs = _SortedRuns.of(facts, parts, by_boxes)
    part, place, sums = _steps(runs)
    rows, counted, sums = sums[:, 0], sums[:, -1], sums[:, :-1]
    cut_into, row_groups = grain(facts.request, counted, rows, runs.files.whole[part])
    groups = (cut_into * row_groups).astype(np.float64)
    after = spread(
        facts.request, rows, cut_into.astype(np.float64), groups, runs.files.opening[part]
    )
    for number in np.flatnonzero(np.isin(part, [*runs.boxes])).tolist():
        boxes, taken = (
            runs.boxes[int(part[number])],
            runs.select_until(int(part[number]), place[number]),
        )
        after[number] = boxes.after(taken, int(cut_into[number]), int(row_groups[number]))
    raw = runs.raw[part]
    return Candidates(
        runs=runs,
        part=part,
        place=place,
        is_last=place == runs.count[part] - 1,
        sums=sums,
        fresh=np.where(rows == raw, rows, rows - runs.rows[runs.start[part] + place]),
        raw=raw,
        cut_into=cut_into,
        row_groups=row_groups,
        after=after,
        read=_sums(runs.part, runs.now)[part],
    )


def _steps(runs: "_SortedRuns") -> tuple[Ints, Ints, Floats]:
    """Return parts, the places up to which their runs are taken, and sums over these runs."""
    each = (runs.rows, runs.sizes, runs.file_count, runs.now, runs.counted)
    of_run = np.stack(each, axis=1)
    sums = np.zeros((len(runs.count), of_run.shape[1]))
    found = np.zeros(len(runs.count))  # rows of the largest candidate of each part
    parts, places, taken = [np.empty(0, np.int64)], [np.empty(0, np.int64)], [sums[:0]]
    for place in range(int(runs.count.max(initial=0))):
        some = np.flatnonzero(runs.count > place)
        sums[some] += of_run[runs.start[some] + place]
        rows = sums[some, 0]
        several = (runs.raw[some] > 0) | (place > runs.has_raw[some])
        grown = (found[some] == 0) | (rows >= STEP * found[some])
        kept = some[several & (rows > 0) & (grown | (runs.count[some] == place + 1))]
        found[kept] = sums[kept, 0]
        parts.append(kept)
        places.append(np.full(len(kept), place))
        taken.append(sums[kept])
    part = np.concatenate(parts)
    order = np.argsort(part, kind="stable")
    return part[order], np.concatenate(places)[order], np.concatenate(taken)[order]


@dataclass(frozen=True, slots=True, kw_only=True)
class _SortedRuns:
    """The runs of many parts, those of a part in the order in which they join its candidates.

    These are the raw files, as one run, and the runs by rows.
    """

    files: "_Files"
    part: Ints
    """Number of the part of each run."""
    rows: Floats
    sizes: Floats
    counted: Floats
    """Bytes of each run as they count for the number of files."""
    file_count: Floats
    now: Floats
    """What filters read of each run, with a cost of opening files."""
    count: Ints
    """Number of runs of each part."""
    start: Ints
    """First run of each part."""
    raw: Floats
    """Raw rows of each part."""
    has_raw: Mask
    """Whether each part has raw files."""
    place_of: Ints
    """Place of the run of each file."""
    boxes: dict[int, ByBoxes]
    """Predictions of some of the parts."""

    @classmethod
    def of(
        cls, facts: FileArrays, parts: Sequence[PartitionPart], by_boxes: Collection[int]
    ) -> "_SortedRuns":
        """Find the runs of each part."""
        files = _Files.of(facts, parts, by_boxes)
        members, part = files.members, files.part_of_run
        rows, sizes, counted = (
            _sums(members.run_of, each)
            for each in (members.rows, facts.sizes[files.at], members.sizes)
        )
        now, boxes = files.read(by_boxes)
        order = np.lexsort((rows, ~members.is_raw, part))
        count = np.bincount(part, minlength=len(parts))
        start = np.cumsum(count) - count
        place = np.empty(len(part), np.int64)
        place[order] = np.arange(len(part)) - start[part[order]]
        return cls(
            files=files,
            part=part,
            rows=rows[order],
            sizes=sizes[order],
            counted=counted[order],
            file_count=_sums(members.run_of)[order],
            now=now[order],
            count=count,
            start=start,
            raw=_sums(part, rows * members.is_raw, len(parts)),
            has_raw=members.is_raw[order][start],
            place_of=place[members.run_of],
            boxes=boxes,
        )

    def select_until(self, part: int, place: int) -> Mask:
        """Return which files of a part are in its runs up to a place."""
        return np.asarray(self.place_of[self.files.slice_of(part)] <= place)

    def ahead(self, part: int, place: int) -> tuple[int, ...]:
        """Return by how many levels these files are narrower in each column than the partition."""
        none = (0,) * len(self.files.facts.request.columns)
        boxes, judged = self.boxes.get(part), self.files.parts[part]
        ahead = none if boxes is None else boxes.ahead(self.select_until(part, place))
        return judged.add_levels(ahead) if judged.trunk is None else none


@dataclass(frozen=True, slots=True, kw_only=True)
class _Files:
    """The files of many parts, by part."""

    facts: FileArrays
    parts: Sequence[PartitionPart]
    at: Ints
    """Indices of the files in the file table."""
    edges: Ints
    """First file of each part, and the end of the last one."""
    members: Members
    part_of_run: Ints
    whole: Ints
    """Bytes beside which the runs of each part are small."""
    opening: Floats
    """Cost of opening a file of each part."""

    @classmethod
    def of(
        cls, facts: FileArrays, parts: Sequence[PartitionPart], by_boxes: Collection[int]
    ) -> "_Files":
        """Look up the files of each part."""
        ordered = [part.at for part in parts]
        for number in by_boxes:  # rows are drawn in the order of files: make it that of their names
            names = take_rows(facts.files.select(["path"]), ordered[number])["path"]
            ordered[number] = ordered[number][pc.sort_indices(names).to_numpy()]
        at = np.concatenate([np.empty(0, np.int64), *ordered])
        lengths = np.array([len(each) for each in ordered], np.int64)
        part_of = np.repeat(np.arange(len(parts)), lengths)
        key = facts.layout[at] + 1
        base = int(key.max(initial=0)) + 1
        distinct, run_of = np.unique(part_of * base + key, return_inverse=True)
        whole = np.array([part.whole for part in parts], np.int64)
        sums = (_sums(part_of, each[at], len(parts)) for each in (facts.rows, facts.counted))
        part_of_run = distinct // base
        members = Members(
            sizes=facts.counted[at],
            rows=facts.rows[at],
            run_of=run_of,
            is_raw=distinct % base == 0,
            whole=whole[part_of_run],
        )
        return cls(
            facts=facts,
            parts=parts,
            at=at,
            edges=np.append(0, np.cumsum(lengths)),
            members=members,
            part_of_run=part_of_run,
            whole=whole,
            opening=opening(facts.request, *sums),
        )

    def slice_of(self, part: int) -> slice:
        """Return where the files of a part are."""
        return slice(int(self.edges[part]), int(self.edges[part + 1]))

    def read(self, by_boxes: Collection[int]) -> tuple[Floats, dict[int, ByBoxes]]:
        """Return what filters read of each run now, and the predictions from boxes."""
        members, cost = self.members, self.opening[self.part_of_run]
        rows, files, groups = (
            _sums(members.run_of, each)
            for each in (members.rows, None, members.row_groups(self.facts.request))
        )
        now = spread(self.facts.request, rows, files, groups, cost)
        now = np.where(members.is_raw, rows + cost * files, now)
        boxes: dict[int, ByBoxes] = {}
        for part in by_boxes:
            here = self.slice_of(part)
            stats = self.facts.stats(self.at[here])
            if all(each is None or each.field("min").null_count == len(each) for each in stats):
                continue
            runs = np.flatnonzero(self.part_of_run == part)
            boxes[part] = ByBoxes(self.facts.request, members.of(here, runs), stats)
            now[runs] = np.bincount(members.run_of[here] - runs[0], boxes[part].now)
        return now, boxes


def _sums(number: Ints, values: Ints | Floats | None = None, least: int = 0) -> Floats:
    """Return the sum of the values with each number, or how many there are."""
    return np.bincount(number, values, least).astype(np.float64)
