from auth.ops.commands import main

# Otherwise click prints `python -m auth.ops.commands`, which `latchkey` starts.
main(prog_name="latchkey")
