"""Plug-ins of others, of which one may be broken."""

import sys

import pytest

from zadapter.backend import plugins
from zadapter.errors import MissingBackendError


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("raise RuntimeError('no licence')", "'broken' cannot be loaded: no licence"),
        ("def (", "'broken' cannot be loaded: invalid syntax"),
        ("import no_such_module", "'broken' requires no_such_module"),
        ("", "'broken' cannot be loaded: .* has no attribute 'Backend'"),
    ],
)
def test_a_broken_plug_in_stops_only_itself(tmp_path, monkeypatch, code, reason):
    """The other formats are there; its own use is refused with the reason."""
    (tmp_path / "broken_backend.py").write_text(code)
    info = tmp_path / "broken-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1\n")
    (info / "entry_points.txt").write_text(f"[{plugins.GROUP}]\nbroken = broken_backend:Backend\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "broken_backend", raising=False)

    assert {"delta", "iceberg", "parquet"} <= set(plugins.formats())
    assert "broken" not in plugins.formats()
    with pytest.raises(MissingBackendError, match=reason):
        plugins.load("broken")
