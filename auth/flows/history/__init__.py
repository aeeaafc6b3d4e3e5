"""Timelines of users, and explanations."""
