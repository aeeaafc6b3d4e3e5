"""Acts of administrators on other users."""
