"""Backups of the database: a consistent copy, its check, and putting one back."""
