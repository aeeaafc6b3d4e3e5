from auth.operator.commands import main

# click would print `python -m auth.operator.commands`, which `latchkey` starts.
main(prog_name="latchkey")
