"""Long documents of the repository as many pages of the site, by their headings."""

import json
import re
from dataclasses import dataclass, field

MOST_WORDS = 1200
"""In a section; longer ones are split again, by the headings of the third level."""


@dataclass(frozen=True)
class Pages:
    """The pages of a document: their texts, the places of its anchors, and their menu."""

    texts: dict[str, str] = field(default_factory=dict)
    anchors: dict[str, tuple[str, str]] = field(default_factory=dict)
    menu: list[object] = field(default_factory=list)

    @property
    def navigation(self) -> str:
        """The menu in the form of a ``.nav.yml``."""
        return json.dumps({"nav": self.menu})


def split(text: str, folder: str) -> Pages:
    """Return the pages of a document: its lead, and one for each section."""
    pages = Pages(menu=["index.md"])
    lead, *sections = _sections(text, 2)
    _add(pages, f"{folder}/index.md", lead, 0)
    for section in sections:
        parts = _sections(section, 3) if len(section.split()) > MOST_WORDS else [section]
        names = [f"{_anchor(_heading(part))}.md" for part in parts]
        for number, (name, part) in enumerate(zip(names, parts, strict=True)):
            _add(pages, f"{folder}/{name}", part, 2 if number else 1)
        pages.menu.append({_heading(section): names} if len(names) > 1 else names[0])
    return pages


def _sections(text: str, level: int) -> list[str]:
    """Return what stands before the first heading of a level, and each with what follows it."""
    sections, fenced = [""], False
    for line in text.splitlines(keepends=True):
        fenced ^= line.startswith("```")
        if not fenced and line.startswith("#" * level + " "):
            sections.append("")
        sections[-1] += line
    return sections


def _heading(section: str) -> str:
    return section.splitlines()[0].lstrip("# ")


def _anchor(heading: str) -> str:
    """Return the anchor that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _add(pages: Pages, place: str, section: str, promoted: int) -> None:
    """Add a page, whose headings are *promoted* by so many levels.

    Raises:
        ValueError: Two sections of the document have one heading.
    """
    if place in pages.texts:
        raise ValueError(f"two sections would be the page {place}; rename one")
    lines, fenced = section.splitlines(keepends=True), False
    for number, line in enumerate(lines):
        fenced ^= line.startswith("```")
        heading = None if fenced else re.match(r"#+ (.*)", line)
        if heading:
            anchor = _anchor(heading[1])
            pages.anchors[anchor] = place, anchor if number else ""
            lines[number] = line[promoted:]
    pages.texts[place] = "".join(lines)
