"""Plain Parquet backend of zadapter: the folder holds a log of versions and a stats table."""

from zadapter_parquet.backend import ParquetBackend

__all__ = ["ParquetBackend"]
