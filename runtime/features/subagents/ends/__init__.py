"""How a child ends, and how its result reaches its parent (SUB-8)."""
