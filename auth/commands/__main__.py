"""`python -m auth.commands` is `latchkey`."""

from auth.commands import main

main()
