"""Schedules: what the gateway does at a time that somebody named (contract ids SCH-1 to SCH-9)."""
