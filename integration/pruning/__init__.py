"""Seeded conditions on tables of nasty values: whoever prunes finds what a full scan finds."""
