"""Speech to text by a server that speaks OpenAI's format."""
