"""The documents are true: their blocks of code run, as a reader would run them.

The blocks of a document run in order, in one new process and an empty folder. Pages that continue
another one, and the examples of public functions, run after it in the same process. A block that
is marked ``notest`` does not run; ``tests/test_documents.py`` checks that it could.
"""

import json
import os
import re
import subprocess
import sys
from itertools import pairwise

import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable

from tests.kit.checkout import ROOT, python_path
from tests.kit.documents import DOCUMENTS, PRINTED, blocks, continued
from tests.kit.variants import slow

RUNNING = [path for path in DOCUMENTS if any(block.runs for block in blocks(path))]
START = "zadapter/docs/start.md"
FIRST = ("README.md", START)
"""What everybody reads; the other documents are tested more rarely."""
ALONE = [path for path in RUNNING if continued(path) is None]
"""Documents that make what their code needs."""
EVENTS = "lake/events"
"""A Delta table that documents make, and whose rows they never change."""
READS = r"data scanned +([\d.]+)% of the rows -> ([\d.]+)%"
MOST_DOCUMENTS = 6
"""Each of them starts a Spark session of its own."""


def pages_after(document):
    """Return the pages whose code continues that of *document*."""
    return [each for each in RUNNING if continued(each) == document]


def sequences():
    """Return documents with the pages that continue them, in either order."""
    found = []
    for document in ALONE:
        pages = pages_after(document)
        if document not in FIRST or pages:
            found.append((document, *pages))
        if len(pages) > 1:
            found.append((document, *reversed(pages)))
    return found


def name(documents):
    """Return the first two, which no other sequence begins with."""
    return " ".join(documents[:2])


def test_few_documents_start_spark():
    """Documents whose code can run only in the cloud, or needs nothing but a look, are no test."""
    assert {*FIRST} < {*ALONE}
    assert len(ALONE) <= MOST_DOCUMENTS


def test_every_block_runs():
    """A page continues one that makes what it needs itself."""
    assert {continued(each) for each in RUNNING} <= {None, *ALONE}


@pytest.mark.parametrize("documents", [*((each,) for each in FIRST), *slow(*sequences())], ids=name)
def test_blocks_run_one_after_the_other(documents, tmp_path):
    """Nothing is prepared; the output that is shown is printed; rows stay as they were."""
    ended = subprocess.run(
        [sys.executable, ROOT / "tests" / "kit" / "documents.py", *documents],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )

    assert ended.returncode == 0, ended.stderr[-5000:]
    printed = json.loads((tmp_path / PRINTED).read_text(encoding="utf-8"))
    promised = {block: said for each in documents for block, said in shown(each).items()}
    assert promised == {block: lines(printed[block]) for block in promised}
    if documents == ("README.md",):
        ((before, after),) = re.findall(READS, "".join(printed.values()))
        assert float(after) < float(before) / 2
    if (tmp_path / EVENTS).exists():
        assert rows(tmp_path / EVENTS) == rows(tmp_path / EVENTS, version=0)


def test_the_readme_shows_what_it_prints():
    """The other documents need not."""
    assert shown("README.md")


def environment():
    """The modules of this checkout, and a session that leaves room for that of other tests."""
    return {**os.environ, "SPARK_DRIVER_MEMORY": "1g", "PYTHONPATH": python_path()}


def shown(document):
    """Return what *document* says that its blocks print, by the block."""
    every = blocks(document)
    return {
        str(block): lines(answer.text)
        for block, answer in pairwise(every)
        if block.runs and answer.language == "text"
    }


def lines(text):
    """Return lines without what differs from run to run: shares, bytes, seconds, files written."""
    masked = re.sub(r"\d+\.\d+|(?<=-> )\d+", "#", text)
    return [" ".join(line.split()).strip("─┌┐└┘ ") for line in masked.strip().splitlines()]


def rows(table, version=None):
    """Return the number of rows of a Delta table, and its columns, each in order."""
    found = DeltaTable(table, version=version).to_pyarrow_table()
    order = pc.sort_indices(found, [("page", "ascending")])
    return found.num_rows, found.take(order).to_pydict()
