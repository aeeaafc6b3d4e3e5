"""How passwords are hashed and checked, and which are allowed. Only this room sees bcrypt."""
