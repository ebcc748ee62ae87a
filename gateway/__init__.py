"""The process: configuration, wiring, HTTP and the pages, the command line."""
