"""What goes out: each account's deliverer, its rates, and text that is shown while it grows."""
