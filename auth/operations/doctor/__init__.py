"""`latchkey doctor`: what fails in practice, one small check for each, in one file per subject."""
