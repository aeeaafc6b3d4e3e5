"""The installed package. The service is not imported from it: its command starts a process of its own."""
