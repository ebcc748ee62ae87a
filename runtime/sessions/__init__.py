"""Sessions: how places become keys, and how much of a transcript a turn may see."""
