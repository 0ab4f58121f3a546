"""The backend contract and the commit loop."""
