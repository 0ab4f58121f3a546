"""Delta Lake backend of zadapter, built on Delta's ``OptimisticTransaction``."""

from zadapter_delta.backend import DeltaBackend

__all__ = ["DeltaBackend"]
