"""The extensions. auth/registry.py says which are on, and imports those."""
