"""API keys, with which programs act for a user."""
