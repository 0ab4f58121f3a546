"""Pages of HTML that need no other file and no network."""

import base64
import io
from collections.abc import Callable, Sequence
from html import escape
from importlib.util import find_spec
from typing import TYPE_CHECKING

from zadapter.errors import UsageError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_STYLE = """
:root { color-scheme: light dark; --text: #111; --ground: #fff; --rule: #ccc; }
@media screen and (prefers-color-scheme: dark) {
  :root { --text: #e4e4e7; --ground: #17181b; --rule: #45474d; }
}
body { font: 15px/1.45 system-ui, sans-serif; margin: 2em auto; max-width: 1200px; padding: 0 1em;
  color: var(--text); background: var(--ground); }
h1 { overflow-wrap: anywhere; }
table { border-collapse: collapse; margin: 0.6em 0 1.4em; }
th, td { padding: 0.25em 0.8em; border-bottom: 1px solid var(--rule); text-align: left;
  vertical-align: top; overflow-wrap: anywhere; }
img { max-width: 100%; height: auto; }
"""


def page(title: str, body: str, figures: Sequence["Figure"] = (), style: str = "") -> str:
    """Return a page.

    Args:
        title: The title, as text.
        body: HTML.
        figures: Figures of matplotlib, which the page holds as PNG.
        style: Rules of CSS beside those of all pages.
    """
    pictures = "".join(
        f'<p><img alt="files of {escape(title)}" src="data:image/png;base64,{_png(each)}"></p>'
        for each in figures
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; img-src data:; style-src 'unsafe-inline'\">"
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}{style}</style></head>"
        f"<body><h1>{escape(title)}</h1>{body}{pictures}</body></html>\n"
    )


def drawing(draw: Callable[[], "Figure"]) -> str:
    """Return a picture as SVG to be put into a page; empty if there is nothing to draw it with.

    Args:
        draw: Makes a figure of matplotlib.
    """
    if find_spec("matplotlib") is None:
        return ""
    held = io.StringIO()
    try:
        draw().savefig(held, format="svg", metadata={"Date": None})
    except UsageError:  # no column has bounds
        return ""
    text = held.getvalue()
    return f'<div style="max-width:1200px">{text[text.index("<svg") :]}</div>'


def _png(figure: "Figure") -> str:
    held = io.BytesIO()
    figure.savefig(held, format="png", dpi=100)
    return base64.b64encode(held.getvalue()).decode("ascii")
