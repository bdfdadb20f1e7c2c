"""`python -m qd` is the command `qd`."""

from qd.cli import main

if __name__ == "__main__":
    main()
