"""What users change about themselves."""
