"""Signing in: passwords, providers, passkeys, codes, sessions, and where to go next."""
