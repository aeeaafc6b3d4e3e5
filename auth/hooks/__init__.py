"""Hooks: the operator's own code, asked before a user is created and before an access token is signed."""
