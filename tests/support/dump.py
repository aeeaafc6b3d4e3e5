"""Write tests/sql/schemas/VERSION.sql: a database of this release, with data, for the tests of upgrades.

Run it for each release, before tagging: `.venv/bin/python -m tests.support.dump`.
"""

import subprocess
import tempfile
from pathlib import Path

from auth import __version__
from auth.operations.embedded_postgres import EmbeddedPostgres, find_programs
from sql import schema
from tests.conftest import ENVIRONMENT, SERVICE_ROLE_KEY, new_app
from tests.support.cast import PASSWORD, register

SCHEMAS = Path(__file__).parent.parent / "sql" / "schemas"


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="latchkey-dump-") as directory:
        state_dir = Path(directory).resolve() / "var"
        postgres = EmbeddedPostgres(state_dir)
        url = postgres.start()
        try:
            schema.apply(url)
            fill({**ENVIRONMENT, "DATABASE_URL": url, "AUTH_STATE_DIR": str(state_dir)})
            (SCHEMAS / f"{__version__}.sql").write_text(dump(url, find_programs()))
        finally:
            postgres.stop()


def fill(environment: dict[str, str]) -> None:
    """Fill each table that requests of a client can fill."""
    client = new_app(environment).test_client()
    service_role = {"Authorization": f"Bearer {SERVICE_ROLE_KEY}"}
    alice = register(client, service_role, "alice@example.com")
    register(client, service_role, "carol@example.com", role="admin")
    alice.try_to_sign_in("not the password")
    alice.sign_in().put("/user", json={"email": "new@example.com"})
    client.post("/signup", json={"email": "dave@example.com", "password": PASSWORD, "data": {"name": "Dave"}})
    client.post("/admin/webhooks", json={"url": "https://192.0.1.1/events"}, headers=service_role)


def dump(url: str, programs: Path) -> str:
    """Return a dump that any supported Postgres and any client can read."""
    command = [str(programs / "pg_dump"), "--inserts", "--no-owner", "--no-privileges", "--no-comments", url]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    # Drop a setting that Postgres 16 does not know, and commands of psql.
    kept = [
        line for line in text.splitlines() if not line.startswith(("SET transaction_timeout", "\\", "--"))
    ]
    return "\n".join(kept) + "\n"


if __name__ == "__main__":
    main()
