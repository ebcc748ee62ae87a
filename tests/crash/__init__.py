"""Real processes, really killed: what is lost or doubled is counted from outside."""
