"""The pages for people: rendering, texts, and one file of views per subject."""
