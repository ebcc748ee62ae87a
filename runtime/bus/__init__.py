"""Implementations of the bus port: signals inside one process, and between replicas."""
