"""What a delivery process does once an hour."""

from collections.abc import Callable

from auth.delivery import janitor, webhooks
from auth.tokens.keys import Sealer
from sql import Database


def run(db: Database, sealer: Sealer, is_stopping: Callable[[], bool]) -> None:
    """Expire messages, encrypt secrets with the newest key, remove expired rows. Raises `psycopg2.Error`."""
    db.run("expire_messages")
    webhooks.reseal(db, sealer)
    janitor.clean(db, is_stopping)
