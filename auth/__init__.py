"""Latchkey: registers users, signs them in and issues tokens."""

__version__ = "0.7.1"
