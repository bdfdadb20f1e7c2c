"""The version of this qd, in its one place. Pure."""

__version__ = "1.0.0"
