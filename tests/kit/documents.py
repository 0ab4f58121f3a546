"""Code blocks in Markdown documents: parsing, and running those of documents.

``python tests/kit/documents.py FOLDER/README.md`` runs the blocks of a document in the working
directory and writes their output to ``printed.json``. Documents that continue the first one may
follow: each runs with the names that the first one has defined.
"""

import inspect
import io
import json
import re
import shlex
import sys
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import reduce
from importlib import import_module
from pathlib import Path
from textwrap import dedent

from tests.kit.checkout import ROOT

DOCUMENTS = sorted(
    path.relative_to(ROOT).as_posix()
    for pattern in ("README.md", "zadapter/**/*.md", "backends/**/*.md", "integration/**/*.md")
    for path in ROOT.glob(pattern)
)
SHELLS = ("sh", "bash", "shell")
PRINTED = "printed.json"
_FENCE = re.compile(r"^```(\w*)[ ]?(.*)\n((?:.*\n)*?)^```$|^::: (\S+)$", re.MULTILINE)
_CONTINUES = re.compile(
    r"^The code of this page continues that of \[[^\]]+\]\((\S+)\)\.$", re.MULTILINE
)


@dataclass(frozen=True)
class Block:
    """Fenced code block of a document."""

    document: str
    line: int
    language: str
    options: tuple[str, ...]
    text: str

    def __str__(self):
        return f"{self.document}:{self.line}"

    @property
    def commands(self):
        """Return the commands of a shell block, without comments, each as a list of arguments."""
        lines = self.text.replace("\\\n", " ").splitlines()
        parts = [part for line in lines for part in line.split(" && ")]
        return [words for part in parts if (words := shlex.split(part, comments=True))]

    @property
    def runs(self):
        """Return whether a test runs the block."""
        return self.language in {"python", *SHELLS} and "notest" not in self.options


def read(document):
    """Read the text of a document."""
    return (ROOT / document).read_text(encoding="utf-8")


def blocks(document):
    """Return the fenced blocks of a document, in order, with those of docstrings that it shows."""
    return _blocks(document, read(document))


def _blocks(document, text):
    found = []
    for match in _FENCE.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        if match[4]:
            found += examples(match[4])
        else:
            options = tuple(match[2].split())
            found.append(Block(document, line, match[1], options, match[3]))
    return found


def examples(name):
    """Return the blocks in the example of a public function's docstring."""
    package, *attributes = name.split(".")
    shown = reduce(getattr, attributes, import_module(package))
    text = (inspect.getdoc(shown) or "").partition("\nExample:\n")[2]
    text = dedent(re.split(r"^\S", text, maxsplit=1, flags=re.MULTILINE)[0])
    return _blocks(name, re.sub(r"^``([^`]+)``$", r"```python\n\1\n```", text, flags=re.MULTILINE))


def continued(document):
    """Return the document whose code comes before that of *document*; None if it has all."""
    link = _CONTINUES.search(read(document))
    if link is None:
        return None
    return ((ROOT / document).parent / link[1]).resolve().relative_to(ROOT).as_posix()


def code(document, heading, language, number=0):
    """Return a block in *language* below a heading of the second level, by its number there."""
    sections = re.split(r"^## (.*)\n", read(document), flags=re.MULTILINE)
    section = dict(zip(sections[1::2], sections[2::2], strict=True))[heading]
    return [found[3] for found in _FENCE.finditer(section) if found[1] == language][number]


def run(first, *others):
    """Run the blocks of documents, and return the output of each; *others* continue the first."""
    namespace = {"__name__": "__main__"}
    printed = _run(first, namespace)
    for document in others:
        printed |= _run(document, namespace.copy())
    return printed


def _run(document, namespace):
    printed = {}
    for block in blocks(document):
        if not block.runs:
            continue
        print(f"running {block}", file=sys.stderr, flush=True)
        if block.language == "python":
            stdout = io.StringIO()
            with redirect_stdout(stdout):
                exec(compile(block.text, str(block), "exec"), namespace)
            printed[str(block)] = stdout.getvalue()
        else:
            printed[str(block)] = "".join(map(_called, block.commands))
    return printed


def _called(command):
    """Run a zadapter command line in this process, with its session."""
    from typer.testing import CliRunner

    from zadapter.cli.app import app

    name, *arguments = command
    if name != "zadapter":
        raise ValueError(f"{command} is no call of zadapter; mark its block notest")
    result = CliRunner().invoke(app, arguments)
    if result.exit_code:
        raise RuntimeError(f"{command} exits with {result.exit_code}: {result.output}")
    return result.stdout


if __name__ == "__main__":
    Path(PRINTED).write_text(json.dumps(run(*sys.argv[1:])), encoding="utf-8")
