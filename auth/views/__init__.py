"""What the outside sees: one blueprint for each resource."""
