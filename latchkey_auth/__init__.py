"""The installed package. Do not import the service from it: the command starts a separate process."""
