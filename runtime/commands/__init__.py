"""What people can do by a word in the chat, without the model (MSG-12)."""
