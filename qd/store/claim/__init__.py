"""Taking rows: looks, low watermarks, and the claim's paths."""
