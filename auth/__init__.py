"""Latchkey: registers users, signs them in and issues tokens."""

__version__ = "0.2.0"
