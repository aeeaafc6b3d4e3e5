"""Keys and metadata below /.well-known."""
