"""The MySQL and MariaDB driver: connections, sessions, the probe for the claim path."""
