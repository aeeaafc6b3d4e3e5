"""Messages to users: requests for links and codes, their quotas, and notices of changes."""
