"""The outside world: one folder per platform or service.

An adapter translates; it decides nothing.
"""
