"""The card that shows a batch of agents at work."""
