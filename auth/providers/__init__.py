"""Signing in with OAuth providers: Authlib does the protocol, presets tell the providers apart."""
