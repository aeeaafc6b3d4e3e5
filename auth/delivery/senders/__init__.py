"""Senders of mail, SMS and webhook events."""
