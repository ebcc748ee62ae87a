"""The web page, the terminal and the API as chats: what is sent to them goes over the bus."""
