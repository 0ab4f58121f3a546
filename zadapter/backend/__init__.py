"""The contract of a backend, and the commit loop."""
