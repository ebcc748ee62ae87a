"""Mailboxes: what agents tell each other, kept until it is read or becomes a dead letter."""
