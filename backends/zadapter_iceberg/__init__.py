"""Apache Iceberg backend of zadapter, built on Iceberg's classes for Spark."""

from zadapter_iceberg.backend import IcebergBackend

__all__ = ["IcebergBackend"]
