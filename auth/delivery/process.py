"""The delivery process: a fork of the gunicorn master, or the program of `latchkey deliver`.

In the fork, gevent makes its threads greenlets. It uses no Flask, and nothing of the application.
"""

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress

import psycopg2
import structlog

from auth.core import logs
from auth.core.keys import fingerprints
from auth.core.keys.key_ring import KeyRing
from auth.core.sender import one_line
from auth.core.settings import Settings
from auth.core.settings.state import METRICS_DIRECTORY
from auth.core.settings.statement_constants import statement_constants
from auth.delivery.attempts import FailureLog
from auth.delivery.deliverer import POLL_INTERVAL, Deliverer
from auth.delivery.rendering import CannotRender, Templates
from auth.delivery.senders import channels
from sql import Database

_CONNECTIONS = 4


class Delivery:
    """Sends due messages and serves metrics. It opens nothing before `run`, so the fork shares its memory."""

    def __init__(self, config: Settings) -> None:
        self._config = config
        self._db = Database(
            config.database_url,
            size=_CONNECTIONS,
            prepare=config.db_prepare,
            constants=statement_constants(config),
            origin=lambda: {"actor": "service"},
        )
        self._key_ring = KeyRing(config)
        sealer = self._key_ring.sealer
        senders = channels.senders(config, self._db, sealer)
        self._count: Callable[[str, str], None] = lambda _channel, _outcome: None
        self._deliverer = Deliverer(
            config, self._db, sealer, senders, count=lambda *of: self._count(*of), templates=_compiled(config)
        )

    def run(self, keys: Settings) -> None:
        """Deliver until SIGTERM or SIGINT, then finish the messages in flight. `keys` are the current ones.

        With `AUTH_DELIVER=false`, only serve metrics. Raises `OtherKeys`, and `SettingsError` for key files.
        """
        # Requests must not slow down while a message is sent: that would reveal known addresses.
        os.nice(19)
        logs.configure(self._config)
        self._key_ring.use(keys)
        if self._config.metrics_bind and METRICS_DIRECTORY in os.environ:
            from auth.delivery import metrics_server

            self._count = metrics_server.start(self._config, self._db)
        while not self._config.deliver:
            time.sleep(3600)
        self._wait_for_the_database(keys)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda _number, _frame: self._deliverer.end())
        log = structlog.get_logger()
        log.info("delivery_started")
        self._key_ring.watch()
        self._deliverer.run()
        log.info("delivery_stopped")

    def _wait_for_the_database(self, keys: Settings) -> None:
        """Wait for the database, and check that these are its keys. Raises `OtherKeys`.

        The files may have been replaced since the service started.
        """
        failures = FailureLog()
        while True:
            try:
                fingerprints.check(self._db, keys)
                return
            except psycopg2.Error as error:
                failures.count(what="database", reason=one_line(str(error)))
            time.sleep(POLL_INTERVAL)


def _compiled(config: Settings) -> Templates:
    """Return the templates, which are known to render, with the layout of mails compiled: it takes 5 MiB."""
    templates = Templates(config)
    with suppress(CannotRender):  # a mail that cannot be rendered is tried again later
        templates.sample("email", "signup", "user@example.com", "en")
    return templates
