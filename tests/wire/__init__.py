"""Wire servers: the real protocols over real sockets, for the real client libraries."""
