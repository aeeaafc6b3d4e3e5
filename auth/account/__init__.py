"""What users change of themselves."""
