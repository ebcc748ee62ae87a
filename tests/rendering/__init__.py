"""The gallery of the renderer: what each platform gets for each construct of Markdown."""
