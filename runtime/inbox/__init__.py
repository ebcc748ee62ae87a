"""Lanes at work: what is queued for a session, who runs it, and what it waits for.

Everything here is a unit of work or a part of one: a plain function of a connection.
"""
