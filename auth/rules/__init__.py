"""The rules: who is refused, and why. Read them first.

Each function decides from facts, which a statement has read with their `now`, and returns a refusal, a key of
the table of errors, or a value. It imports the standard library alone and knows no clock, request or
database. docs/architecture.md lists the files.
"""
