"""Plans and reports of runs, as values and as text."""
