"""The JSON API, with one file of views per subject. What they do is in auth/flows."""
