"""Steps that several views share."""
