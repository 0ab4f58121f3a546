"""Runs that are taken up after a crash of their driver: their notes, and the files they left."""
