"""Stores that tables lie in: local disks, HDFS, object stores."""
