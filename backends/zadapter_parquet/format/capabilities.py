"""What folders of plain Parquet files can do."""

from zadapter.backend.format import Format

FORMAT = Format(
    name="parquet",
    log="_zadapter/log",
    migrates=True,
    own_versions=True,
    dates_files=True,
    inspects=True,
    recovers=True,
    renames=True,
)
