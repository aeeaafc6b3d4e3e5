"""The permitted values of settings."""
