"""Values as bytes in their order, and the z-values of several columns."""
