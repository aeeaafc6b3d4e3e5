"""How fast the service is, how much it takes, and how it bears too much: `make bench` and `make bench-large`."""
