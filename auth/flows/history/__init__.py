"""What happened: timelines and explanations."""
