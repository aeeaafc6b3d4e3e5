"""The HTTP API: one blueprint per resource."""
