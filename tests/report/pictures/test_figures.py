"""Pictures are legible for columns of any type and any number of files."""

from decimal import Decimal
from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PatchCollection, QuadMesh
from matplotlib.figure import Figure
from matplotlib.text import Text

from tests.kit.builders import file_table
from zadapter.errors import UsageError
from zadapter.report.pictures.axes import scale
from zadapter.report.pictures.effects import Effects, effects
from zadapter.report.pictures.figures import clusters
from zadapter.report.pictures.pages import page

LENGTH = 90
VALUES = {
    "int": pa.array(np.arange(LENGTH) * 10**11),
    "double": pa.array(np.linspace(-1e-7, 1e-7, LENGTH)),
    "decimal": pa.array([Decimal(n) / 8 for n in range(LENGTH)], pa.decimal128(20, 3)),
    "date": pa.array(range(19_000, 19_000 + LENGTH), pa.date32()),
    "timestamp": pa.array(np.arange(LENGTH) * 10**12 + 10**15, pa.timestamp("us", "UTC")),
    "text": pa.array([f"https://example.org/{n:05}$x^2_{{" for n in range(LENGTH)]),
    "binary": pa.array([bytes([n, 255]) for n in range(LENGTH)]),
    "boolean": pa.array([n > LENGTH / 2 for n in range(LENGTH)]),
}


def files(*names, count=30):
    """Return files, each with a range of consecutive values; every tenth has no bounds."""
    starts = np.arange(count) % (LENGTH - 9)
    known = np.arange(count) % 10 > 0
    nulls = pa.array(np.zeros(count, np.int64))
    stats = {}
    for name in names:
        low, high = (VALUES[name].take(pa.array(starts + more, mask=~known)) for more in (0, 9))
        stats[name] = (low, high, nulls)
    return file_table([str(number) for number in range(count)], stats=stats)


def texts(figure):
    """Return the boxes of all texts of a figure, in pixels, as it is drawn."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    found = []
    for axes in figure.axes:
        labels = [each for each in axes.get_children() if isinstance(each, Text)]
        labels += [axes.xaxis.label, axes.yaxis.label]
        for axis, (first, last) in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
            ticks = [tick for tick in axis.get_major_ticks() if first <= tick.get_loc() <= last]
            labels += [tick.label1 for tick in ticks]
        legend = axes.get_legend()
        labels += legend.get_texts() if legend else []
        found += [text for text in labels if text.get_text() and text.get_visible()]
    boxes = [(text.get_text(), text.get_window_extent(canvas.get_renderer())) for text in found]
    width, height = canvas.get_width_height()
    inside = [(name, box) for name, box in boxes if box.x0 >= -1 and box.x1 <= width + 1]
    return inside, (width, height), len(boxes)


@pytest.mark.parametrize(
    "names", [("int", "double"), ("date", "text"), ("timestamp", "decimal"), ("boolean", "binary"),
              ("text", "timestamp")],
)  # fmt: skip
@pytest.mark.parametrize("tables", [1, 2])
def test_no_text_covers_another(names, tables):
    """At 1200 x 800, with labels in the columns' own units."""
    shown = [("before $x", files(*names)), ("after", files(*names, count=60))][:tables]

    inside, size, count = texts(clusters(shown, names))

    assert size == (1200, 800)
    assert len(inside) == count
    for (one, first), (other, second) in combinations(inside, 2):
        overlap = first.intersection(first, second)
        assert overlap is None or min(overlap.width, overlap.height) < 2, (one, other)


@pytest.mark.parametrize(("count", "after"), [(300, "learned from the log"), (1, "")])
def test_no_text_covers_another_in_what_queries_read(count, after):
    """Of one query or many, with long texts; also where the table stays as it is."""
    names = ["as it is", "learned from the log", "most filtered columns, in turn", "candidate 1"]
    figure = effects(
        Effects(
            title="lake/lineitem_of_a_very_long_name_in_a_deep_folder: 3,000 filters",
            after=after,
            labels=tuple(f"a = '$x^{n}' AND {'b < 7 AND ' * 20} c = {n}" for n in range(count)),
            weights=tuple(1.0 + n % 7 for n in range(count)),
            shares=tuple((0.2 + n % 8 / 10, n % 11 / 11) for n in range(count)),
            layouts=tuple((name, 0.9 / (n + 1)) for n, name in enumerate(names)),
        )
    )

    inside, size, number = texts(figure)

    assert size == (1200, 800)
    assert len(inside) == number
    for (one, first), (other, second) in combinations(inside, 2):
        overlap = first.intersection(first, second)
        assert overlap is None or min(overlap.width, overlap.height) < 2, (one, other)
    (legend,) = [axes.get_legend() for axes in figure.axes if axes.get_legend()]
    assert [each.get_text() for each in legend.get_texts()] == ["as it is", *filter(None, [after])]


def test_many_files_are_drawn_as_their_density():
    """And few as boxes; both without the files that have no bounds, whose number is named."""
    few, many = (
        clusters([("t", files("int", "date", count=n))], ["int", "date"]) for n in (30, 900)
    )

    assert any(isinstance(each, PatchCollection) for each in few.axes[0].collections)
    (mesh,) = [each for each in many.axes[0].collections if isinstance(each, QuadMesh)]
    assert mesh.get_array().max() > 10
    assert "30 files; 3 without bounds" in few.axes[0].get_title("left")


def test_one_column_and_one_file_can_be_drawn():
    """A single range, and a point."""
    assert len(clusters([("t", files("text", count=2))], "text").axes) == 2
    assert clusters([("t", files("int", count=30).slice(1, 1))], ["int"])


def test_columns_without_bounds_are_refused():
    """With what to do next."""
    with pytest.raises(UsageError, match="no file has bounds of 'other'"):
        clusters([("t", files("int"))], ["other"])
    with pytest.raises(UsageError, match="one or two columns"):
        clusters([("t", files("int"))], ["int", "int", "int"])


def test_a_page_needs_no_network():
    """It holds its pictures, loads nothing, and shows texts as they are."""
    text = page("a <b>", "<p>facts</p>", [clusters([("t", files("int"))], ["int"])])

    assert "data:image/png;base64," in text
    assert "http" not in text.replace("http-equiv", "")
    assert "<h1>a &lt;b&gt;</h1>" in text


@pytest.mark.parametrize("unit", [1, 60, 3_600, 86_400, 30 * 86_400])
def test_times_of_any_length_have_few_ticks_and_no_warning(recwarn, unit):
    """Also times of three hours, three days or three years."""
    axis = Figure().subplots().xaxis
    for count in range(2, 60):
        last = 1_720_000_000 + count * unit
        times = scale("t", pa.array([1_720_000_000, last], pa.timestamp("s")))
        times.label(axis)
        axis.set_view_interval(*times.places, ignore=True)

        assert len(axis.get_majorticklocs()) < 15, count
    assert [str(each.message) for each in recwarn] == []
