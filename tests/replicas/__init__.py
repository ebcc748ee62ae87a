"""Several real gateways on one PostgreSQL: together, and when one of them fails."""
