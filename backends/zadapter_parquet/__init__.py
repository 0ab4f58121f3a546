"""Plain Parquet for zadapter: a log of versions and a table of stats in the folder itself."""

from zadapter_parquet.backend import ParquetBackend

__all__ = ["ParquetBackend"]
