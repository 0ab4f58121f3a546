"""Columns that state the place of a row: its file, its position there, and its id."""

FILE = "_zadapter_file"
"""Name of the file, as :class:`~zadapter.backend.row_files.RowFiles` takes it."""
POSITION = "_zadapter_position"
"""Number of the row in its file, from 0; deleted rows count (int64)."""
ROW_ID = "_zadapter_row_id"
"""Id of the row, in tables whose rows have ids (int64)."""
