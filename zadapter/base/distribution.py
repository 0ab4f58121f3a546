"""The distribution that zadapter is installed from; ``zadapter`` on PyPI is another project."""

import json
from importlib.metadata import PackageNotFoundError, distribution

NAME = "zadapter-spark"


def install_command(extra: str) -> str:
    """Return the command that adds an extra to the installation, as part of a message."""
    if _is_from_folder():
        return f"run pip install '.[{extra}]' in a clone of zadapter's repository"
    return f"run pip install '{NAME}[{extra}]'"


def _is_from_folder() -> bool:
    """Return whether a folder was installed, by the file that PEP 610 asks installers for."""
    try:
        source = distribution(NAME).read_text("direct_url.json")
    except PackageNotFoundError:  # a folder or an archive on Python's path
        return False
    return source is not None and "dir_info" in json.loads(source)
