"""The embedded store's driver: a SQLite file."""
