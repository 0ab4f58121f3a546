"""Seeded runs by hand: changes of tables, conditions, and faults in the code."""
