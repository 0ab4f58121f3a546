"""Arguments of the public functions, checked and resolved."""
