"""The tools by which a model spawns, looks after and asks agents."""
