"""Stores of tables: local disk, HDFS and object stores."""
