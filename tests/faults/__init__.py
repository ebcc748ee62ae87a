"""The fault matrix: every point at which a gateway can die, and what came of it, counted."""
