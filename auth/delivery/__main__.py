"""The delivery process. It does not load Flask or the application, which would double its memory.

With the argument `metrics`, it only serves the metrics.
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable

import psycopg2
import structlog

from auth.core import logs, settings
from auth.core.keys import fingerprints
from auth.core.keys.key_ring import KeyRing
from auth.core.log_writer import writer
from auth.core.sender import one_line
from auth.core.settings.state import HEARTBEAT, METRICS_DIRECTORY
from auth.core.settings.statement_constants import statement_constants
from auth.delivery.attempts import FailureLog
from auth.delivery.deliverer import POLL_INTERVAL, Deliverer
from auth.delivery.senders import channels
from sql import Database

_CONNECTIONS = 4


def main() -> None:
    writer.start()
    _call_at_the_end(sys.exit)
    # Requests must not slow down while a message is sent: that would reveal known addresses.
    os.nice(19)
    if heartbeat := os.environ.get(HEARTBEAT):
        threading.Thread(target=_beat, args=(int(heartbeat),), name="heartbeat", daemon=True).start()
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
        count = None
        if config.metrics_bind and METRICS_DIRECTORY in os.environ:
            from auth.delivery import metrics_server

            count = metrics_server.start(config, db)
        if sys.argv[1:] == ["metrics"]:
            while True:  # the system may deliver the signal to another thread, which would not wake this one
                time.sleep(0.2)
        _wait_for_the_database(config, db)
        deliverer = Deliverer(
            config, db, key_ring.sealer, channels.senders(config, db, key_ring.sealer), count=count
        )
    except (settings.SettingsError, fingerprints.OtherKeys, OSError) as error:
        sys.exit(logs.start_failure(str(error)))
    _call_at_the_end(deliverer.end)
    log = structlog.get_logger()
    log.info("delivery_started")
    key_ring.watch()
    deliverer.run()
    log.info("delivery_stopped")


def _beat(descriptor: int) -> None:
    """Tell the master every second that this process is not frozen, as gunicorn's workers do.

    It runs in a thread, because with this priority a round of deliveries may take long on a busy machine.
    """
    while True:
        now = time.monotonic()
        os.utime(descriptor, (now, now))
        time.sleep(1)


def _wait_for_the_database(config: settings.Settings, db: Database) -> None:
    """Wait for the database, and check that these are its keys. Raises `OtherKeys`.

    The files may have been replaced since the service started.
    """
    failures = FailureLog()
    while True:
        try:
            fingerprints.check(db, config)
            return
        except psycopg2.Error as error:
            failures.count(what="database", reason=one_line(str(error)))
        time.sleep(POLL_INTERVAL)


def _call_at_the_end(handler: Callable[[], object]) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: handler())


if __name__ == "__main__":
    main()
