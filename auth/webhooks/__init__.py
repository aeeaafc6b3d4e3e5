"""Webhooks: events for other systems."""
