"""Messages to users: link, code, quota, and notices of changes."""
