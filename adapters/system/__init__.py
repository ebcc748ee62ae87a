"""The machine: its time, its network, its model-free services."""
