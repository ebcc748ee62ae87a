"""What the engine needs from outside, as Protocols; each has a fake under ``tests/fakes``."""
