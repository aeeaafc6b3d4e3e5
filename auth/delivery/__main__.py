"""The delivery process. It does not load Flask and the application, which would double its memory."""

import signal
import sys

import structlog

from auth import logs, settings
from auth.delivery.deliverer import Deliverer
from auth.settings.constants import statement_constants
from auth.settings.key_ring import KeyRing
from sql import Database

_CONNECTIONS = 4


def main() -> None:
    try:
        config = settings.load(missing_secrets="refuse")
        logs.configure(config)
        db = Database(
            config.database_url,
            size=_CONNECTIONS,
            prepare=config.db_prepare,
            constants=statement_constants(config),
            origin=lambda: {"actor": "service"},
        )
        key_ring = KeyRing(config)
        deliverer = Deliverer(config, db, key_ring.sealer)
    except (settings.SettingsError, OSError) as error:
        sys.exit(str(error))
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: deliverer.end())
    log = structlog.get_logger()
    log.info("delivery_started")
    key_ring.watch()
    deliverer.run()
    log.info("delivery_stopped")


if __name__ == "__main__":
    main()
