"""Two versions on one database: what each released revision's code says to it, and what it finds.

`python -m tests.upgrade.record` writes down the statements of this version; the tests hold every
later schema to them (`docs/decisions/0018-rolling-upgrades.md`).
"""
