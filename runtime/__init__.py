"""The engine: it decides everything and knows no platform, no provider and no HTTP."""
