"""Ending claims under their tokens, and what a row keeps of them."""
