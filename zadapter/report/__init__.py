"""What a run will do and has done, as values, text, progress, pictures and pages."""
