"""How a child ends, who stops it, and how its parent gets its result (SUB-8, SUB-19)."""
