"""What applications are told without a browser."""
