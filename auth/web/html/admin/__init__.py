"""What every page for administrators needs."""
