"""The console: what administrators see and do in a browser."""
