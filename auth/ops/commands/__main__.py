from auth.ops.commands import main

# click would print `python -m auth.ops.commands`, which `latchkey` starts.
main(prog_name="latchkey")
