"""A gateway under people and faults for as long as one likes, and what was lost or doubled.

`python -m tests.soak --seconds 600` (or `make soak`) runs it; `driver` holds it together. What
people do is in `actions`, what goes wrong in `faults`: a new kind of either is one more class in
the list at the end of its module.
"""
