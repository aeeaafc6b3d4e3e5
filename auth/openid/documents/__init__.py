"""Client ID Metadata Documents."""
