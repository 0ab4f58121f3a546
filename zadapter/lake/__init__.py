"""Maintenance of many tables under one budget: discover, judge, choose, run, clean up, journal."""
