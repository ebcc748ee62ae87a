"""What the model can do: the tools, how their calls are checked, and how output comes back."""
