"""What tests stand on: real servers, real processes, and waiting for conditions."""
