"""What the value of a setting may be."""
