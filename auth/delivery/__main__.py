"""The program that `latchkey deliver` becomes. It does not load Flask, which would double its memory."""

import signal
import sys
from dataclasses import replace

from auth.core import event_lines, settings
from auth.core.keys import fingerprints
from auth.core.log_writer import writer
from auth.delivery.process import Delivery
from auth.delivery.rendering import load_templates


def main() -> None:
    writer.start()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: sys.exit())
    try:
        config = replace(settings.load(missing_secrets="refuse"), deliver=True)
        load_templates(config)  # checks them
        Delivery(config).run(config)
    except (settings.SettingsError, fingerprints.OtherKeys, OSError) as error:
        sys.exit(event_lines.before_settings(str(error)))


if __name__ == "__main__":
    main()
