"""What is compared: a small module each, and what runs in its own environment in `inside/`."""
