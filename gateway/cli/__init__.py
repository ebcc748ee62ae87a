"""The command line: one module for each group of commands, thin; it talks HTTP to a gateway."""
