"""The terminal: how a conversation looks there. What is typed goes through the gateway's API."""
