"""The Dockerfile's image, built and run without a container engine."""
