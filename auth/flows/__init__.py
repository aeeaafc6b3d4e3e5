"""What the product does, one package or file a subject. `views.py` is the JSON API of each."""
