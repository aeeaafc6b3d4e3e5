"""Signing in: passwords, providers, API keys, proofs, and where to go next."""
