"""The rules: who is refused, and why. Read them first.

Each function decides from facts, which a statement has read with their `now`. It returns a value, or a
refusal: a key of the table of errors, or None if nothing is refused. It imports the standard library alone
and knows no clock, request or database. "Rule 13" is that row of docs/rules.md; docs/architecture.md says
what each file decides, in the order to read them.
"""
