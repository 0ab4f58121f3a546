"""Stats of data files in manifests."""
