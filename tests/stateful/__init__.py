"""State machines over the store's units: any order of events keeps the invariants."""
