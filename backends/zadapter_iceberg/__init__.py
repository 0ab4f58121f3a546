"""Apache Iceberg for zadapter, over Iceberg's own classes for Spark."""

from zadapter_iceberg.backend import IcebergBackend

__all__ = ["IcebergBackend"]
