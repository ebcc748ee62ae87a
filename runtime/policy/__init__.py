"""Policy: whether a tool call is allowed, denied or asked about, and by which rule."""
