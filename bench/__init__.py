"""Benchmarks of speed, memory and overload: `make bench` and `make bench-large`."""
