"""Spawning: what may be asked for, who gets it, and the children that it makes."""
