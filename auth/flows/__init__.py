"""The behaviour of the product, with one package or file per subject."""
