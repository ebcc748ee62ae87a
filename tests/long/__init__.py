"""Checks that take minutes and a network; run by name, never by `make test`."""
