"""What administrators do to others."""
