"""Tests of the backend contract, for backends of this project and of third parties.

In a pytest module, subclass :class:`BackendContract` and, if the format declares ``migrates`` or
``own_versions``, :class:`MigrationContract` or :class:`VersionsContract`. Define the fixtures
``spark`` (a running session) and ``backend`` (the backend on it), and the methods of
:class:`Tables`. The backend must be installed, since the tests also call ``zadapter.optimize`` and
``zadapter.migrate`` with its name.
"""

from tests.contract.backend import BackendContract
from tests.contract.migration import MigrationContract
from tests.contract.tables import Tables, sort_rows
from tests.contract.versions import VersionsContract

__all__ = ["BackendContract", "MigrationContract", "Tables", "VersionsContract", "sort_rows"]
