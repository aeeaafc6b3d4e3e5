"""The keys of a running service, their fingerprints and their rotation."""
