"""Links and codes: requesting, spending and undoing."""
