"""Pictures of tables, with matplotlib, and pages of HTML that hold them."""
