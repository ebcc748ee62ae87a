"""The loops that keep a gateway going: turns, delivery, timers, and the leases they stand on."""
