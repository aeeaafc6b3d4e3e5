"""Outgoing HTTP with deadlines, IP addresses, redirect targets."""
