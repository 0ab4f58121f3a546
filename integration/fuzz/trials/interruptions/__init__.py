"""Trials of calls that something outside stops or meets: kills, time limits, clocks."""
