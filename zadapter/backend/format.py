"""Description of a table format: its capabilities, and its requirements of a Spark session."""

from collections.abc import Mapping
from dataclasses import dataclass

from zadapter.backend.builds import Build, LocalSettings

Settings = Mapping[str, str]
"""Spark settings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Library:
    """The Java library of a format, which a Spark session must have loaded."""

    builds: tuple[Build, ...]
    """Tested builds, the one for the default release of Spark first."""
    excludes: tuple[str, ...] = ()
    """Dependencies of the packages that Spark already has; a second copy takes seconds to load."""
    extension: str
    """Class for ``spark.sql.extensions``."""
    catalog: str | None = None
    """Class of ``spark_catalog``, unless the user has configured another one."""
    probe: str
    """A class that can be loaded if and only if the packages are present."""
    version_method: str
    """Static method that returns the loaded version."""
    operators: tuple[str, ...]
    """Java packages of the format's own operators in Spark's plans."""
    local_settings: LocalSettings = lambda _settings, _cores: {}
    """Returns further settings of a new session on a local master."""
    python_package: str | None = None
    """Python package that zadapter's extra for the format installs; None: it installs none."""
    client: str | None = None
    """Python package of the same version, which is optional; the build that fits it is chosen."""

    @property
    def packages(self) -> tuple[str, ...]:
        """Maven coordinates of the preferred build; none if there is no build."""
        return self.builds[0].packages if self.builds else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """A table format, as its backend declares it."""

    name: str
    """Name for ``backend=`` and ``to=``, which the backend's entry point has, too."""
    library: Library | None = None
    """The format's Java library; None: Spark alone reads and writes the format."""
    log: str | None = None
    """Folder of the log, relative to the table's, if only tables of the format have it."""
    migrates: bool = False
    """Whether tables can be migrated to and from other formats: the backend is a
    :class:`~zadapter.backend.contract.MigrationBackend`."""
    own_versions: bool = False
    """Whether the backend itself writes rows and keeps versions, since the format has no engine: it
    is a :class:`~zadapter.backend.contract.VersionedBackend`."""
    dates_files: bool = False
    """Whether the log knows when files were added: the backend is a
    :class:`~zadapter.backend.contract.DatedBackend`."""
    inspects: bool = False
    """Whether the backend returns what Spark's own reader plans, and corrects recorded statistics:
    it is an :class:`~zadapter.backend.contract.InspectedBackend`."""
    rebases: bool = False
    """Whether the backend knows the place of each row in its file, so that rewrites can be rebased:
    it is a :class:`~zadapter.backend.contract.RebasingBackend`."""
    recovers: bool = False
    """Whether the backend finds the files of writes whose process has died: it is a
    :class:`~zadapter.backend.contract.RecoverableBackend`."""
    external_files: bool = False
    """Whether a table can have files outside its folder."""
    renames: bool = False
    """Whether written files are renamed, which object stores bill as copies."""
    field_ids: bool = False
    """Whether the format reads columns by field ids where files have them."""
    rows_show_paths: bool = False
    """Whether Spark's ``input_file_name`` shows the path of a file as the log has it. If not, it
    shows the file's URI, which is escaped."""
