"""The servers that contestants keep their jobs in, each private to the benchmark and with a durability that is said."""
