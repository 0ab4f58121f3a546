"""Migrations of one table to another format."""
