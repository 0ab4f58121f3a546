"""Migration of tables between formats."""
