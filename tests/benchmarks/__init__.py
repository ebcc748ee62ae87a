"""Measurements of the real path. They print figures and assert nothing about time."""
