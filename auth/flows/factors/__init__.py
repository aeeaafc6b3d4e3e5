"""Second factors: apps, phones, and recovery codes."""
