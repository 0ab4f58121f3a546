"""Selection of files to rewrite, and prediction of the effect of a rewrite."""
