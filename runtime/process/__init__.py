"""What every worker of a process stands on: wake-ups, one look a tick, leases, timers."""
