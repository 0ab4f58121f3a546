"""Stats of data files, as manifests have them."""
