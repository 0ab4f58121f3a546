"""Order-preserving bytes of values, and z-values of several columns."""
