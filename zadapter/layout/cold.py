"""The request of the cold tier of a table, whose files are larger."""

from dataclasses import replace

from zadapter.layout.layout import Request

COLD = 4
"""How many times larger the files of the cold tier are, with row groups of the usual size."""


def request_for_cold(request: Request) -> Request:
    """Return the request for the cold files of a table for which *request* is made."""
    return _scale_request(request, COLD, cold=True)


def request_of_table(request: Request) -> Request:
    """Return the request of the table, given the request of its cold or of its other files."""
    return _scale_request(request, 1 / COLD, cold=False) if request.cold else request


def _scale_request(request: Request, times: float, *, cold: bool) -> Request:
    size, row_groups = int(request.target_file_size * times), int(request.row_groups * times)
    return replace(request, target_file_size=size, row_groups=row_groups, cold=cold)
