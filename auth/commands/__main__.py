from auth.commands import main

# click would print `python -m auth.commands`, which `latchkey` starts.
main(prog_name="latchkey")
