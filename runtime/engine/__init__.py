"""One process: what starts in which order, and what a feature brings to it."""
