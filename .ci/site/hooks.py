"""Hooks of the documentation site: pages beside code, links that leave the site, commands."""

import posixpath
import re
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

from long_documents import Pages, split
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
DOCS = "zadapter/docs"
BESIDE_CODE = {
    "zadapter/README.md": "internals/architecture.md",
    "backends/README.md": "internals/writing-a-backend.md",
    "backends/zadapter_delta/README.md": "formats/delta.md",
    "backends/zadapter_iceberg/README.md": "formats/iceberg.md",
    "backends/zadapter_parquet/README.md": "formats/parquet.md",
    "integration/README.md": "internals/tests.md",
    ".github/CONTRIBUTING.md": "internals/contributing.md",
    ".github/CHANGELOG.md": "internals/changelog.md",
}
"""Documents that stay where they are, with their places on the site."""
BENCHMARK = "integration/bench/README.md"
"""A document that is split into many pages."""
PLACES = {
    **BESIDE_CODE,
    "README.md": "index.md",
    DOCS: "index.md",
    BENCHMARK: "benchmark/index.md",
}
DETAILS = ("reference/api/", "internals/", "benchmark/")
"""Pages that the search lists after those that solve a task."""
COMMANDS = "reference/commands.md"
STYLE = "site.css"
_FENCE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")
_LOADED = re.compile(
    r"<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)=[\"']?(?:https?:)?//[^>]*>"
    r"|<\w+ class=[\"']?mermaid[^>]*>"  # for which the theme loads a script
)
_ROLE = re.compile(r":(?:attr|class|data|exc|func|meth|mod):<code>~?(?:\w+\.)*?(\w[\w.]*)</code>")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the documents beside code, their pictures, the page of all commands, and the style."""
    for source, place in BESIDE_CODE.items():
        files.append(File.generated(config, place, abs_src_path=str(ROOT / source)))
        for mark, _, link in _LINK.findall((ROOT / source).read_text(encoding="utf-8")):
            picture = _target(source, link).removeprefix(f"{DOCS}/")
            if mark and files.get_file_from_path(picture) is None:
                files.append(File.generated(config, picture, abs_src_path=str(ROOT / picture)))
    pages = _benchmark()
    for place, text in pages.texts.items():
        files.append(File.generated(config, place, content=text))
    files.append(File.generated(config, "benchmark/.nav.yml", content=pages.navigation))
    files.append(File.generated(config, COMMANDS, content=_commands()))
    files.append(File.generated(config, STYLE, abs_src_path=str(Path(__file__).with_name(STYLE))))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Let links between files of the repository lead to the pages of the site."""
    here = page.file.src_uri
    if here.startswith(DETAILS):
        page.meta["search"] = {"boost": 0.5}
    parts_of = dict.fromkeys(_benchmark().texts, BENCHMARK)
    sources = parts_of | {place: source for source, place in BESIDE_CODE.items()}
    source = sources.get(here, f"{DOCS}/{here}")

    def link_on_site(link: re.Match[str]) -> str:
        mark, text, address = link.groups()
        if "://" in address:
            return link[0]
        path, _, anchor = address.partition("#")
        target = _target(source, path) if path else source
        place = PLACES.get(target, target.removeprefix(f"{DOCS}/"))
        if target == BENCHMARK:
            place, anchor = _benchmark().anchors.get(anchor, (place, anchor))
        if files.get_file_from_path(place) is not None:
            relative = posixpath.relpath(place, posixpath.dirname(here) or ".")
            return f"{mark}[{text}]({relative}{'#' + anchor if anchor else ''})"
        if target.startswith(f"{DOCS}/"):
            return link[0]  # a mistake, which the strict build reports
        if not (ROOT / target).exists():
            raise FileNotFoundError(f"{source} links to {address}, which does not exist")
        return f"[{text}]({config.repo_url}/blob/main/{target})" if config.repo_url else text

    parts = _FENCE.split(markdown)
    # the words after a block's language are for tests
    parts = [re.sub(r"^(```\w+) .*", r"\1", part) for part in parts]
    return "".join(p if p.startswith("```") else _prose(p, link_on_site) for p in parts)


def _prose(text: str, link_on_site: Callable[[re.Match[str]], str]) -> str:
    """Return prose with other links, and with what is in a list indented as MkDocs asks for."""
    return re.sub(r"^ {2,3}(?=\S)", "    ", _LINK.sub(link_on_site, text), flags=re.MULTILINE)


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001 - MkDocs names them
    """Show the roles of docstrings as code."""
    return _ROLE.sub(r"<code>\1</code>", html)


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:  # noqa: ARG001 - MkDocs names them
    """Refuse what a browser would load from another host: a reader may reach this one alone."""
    if loaded := next((tag for tag in _LOADED.findall(output) if "canonical" not in tag), None):
        raise ValueError(f"{page.file.src_uri} loads from another host: {loaded}")
    return output


@cache
def _benchmark() -> Pages:
    """Return the pages of the benchmark."""
    return split((ROOT / BENCHMARK).read_text(encoding="utf-8"), "benchmark")


def _target(source: str, path: str) -> str:
    """Return the path in the repository that a document links to."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(source), path))


def _commands() -> str:
    """Return what ``--help`` says of all commands."""
    command = [sys.executable, "-m", "typer", "zadapter.cli.app", "utils", "docs"]
    told = subprocess.run(  # noqa: S603 - nothing of it is given from outside
        [*command, "--name", "zadapter", "--title", "All commands"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    return told.stdout
