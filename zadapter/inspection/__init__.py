"""Analyses, explanations and audits of tables, and advice from their queries."""
