"""What runs in the caller's own transaction, on a cursor that isn't ours: enqueue and complete."""
