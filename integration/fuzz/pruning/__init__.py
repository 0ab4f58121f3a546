"""Seeded conditions on tables of extreme values: pruned reads match full scans."""
