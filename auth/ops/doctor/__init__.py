"""`latchkey doctor`: one small check for each common problem, in one file per subject."""
