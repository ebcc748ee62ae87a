"""The examples of the documentation, run as they stand."""
