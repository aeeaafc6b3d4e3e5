"""What commands share, and the checks of the doctor, also those of wings."""
