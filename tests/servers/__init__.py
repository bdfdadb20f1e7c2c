"""Every server that qd is shown on: how it is fetched, started and tested over. `make test-servers`."""
