"""Texts for people: catalogues in five languages, and the names, addresses and times in them."""
