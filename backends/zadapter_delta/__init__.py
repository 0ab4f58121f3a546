"""Delta Lake for zadapter, over Delta's own ``OptimisticTransaction``."""

from zadapter_delta.backend import DeltaBackend

__all__ = ["DeltaBackend"]
