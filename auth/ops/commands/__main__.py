import signal
import sys

from auth.ops.commands import main

# A signal to end raises an exception, so that drafts are removed.
for number in (signal.SIGTERM, signal.SIGHUP):
    if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup sets it
        signal.signal(number, lambda number, _frame: sys.exit(128 + number))
# Otherwise click prints `python -m auth.ops.commands`, which `latchkey` starts.
main(prog_name="latchkey")
