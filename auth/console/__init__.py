"""The console for administrators, in a browser."""
