"""The behaviour of the product, with one package or file per subject. `views.py` is its JSON API."""
