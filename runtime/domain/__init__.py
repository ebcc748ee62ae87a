"""The nouns of Gatehouse as frozen values: no I/O, no clock, no driver."""
