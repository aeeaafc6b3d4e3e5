"""Links and codes: spending and undoing them."""
