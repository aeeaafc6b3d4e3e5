"""The service itself: health, public settings, the welcome page."""
