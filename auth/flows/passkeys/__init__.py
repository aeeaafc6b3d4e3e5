"""Passkeys and security keys: registering them, and signing in with them."""
