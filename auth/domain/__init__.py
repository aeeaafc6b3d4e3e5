"""What the product does, for the API, the pages, the console and the commands."""
