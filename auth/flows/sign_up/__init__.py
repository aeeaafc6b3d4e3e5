"""Signing up: new users, and the first address of an anonymous one."""
