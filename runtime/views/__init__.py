"""Read models for HTTP, the command line and the pages. They change nothing."""
