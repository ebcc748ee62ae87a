"""Where commands run: bubblewrap, Landlock, or unconfined by explicit setting (TOOL-5)."""
