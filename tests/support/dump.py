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
from tests.support import factors, passkeys
from tests.support.cast import PASSWORD, register, sign_up_anonymously
from tests.support.pages import Visitor

SCHEMAS = Path(__file__).parent.parent / "sql" / "schemas"


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="latchkey-dump-") as directory:
        state_dir = Path(directory).resolve() / "var"
        postgres = EmbeddedPostgres(state_dir)
        url = postgres.start()
        try:
            schema.apply(url)
            own = {"DATABASE_URL": url, "AUTH_STATE_DIR": str(state_dir), "AUTH_ANONYMOUS_ENABLED": "true"}
            fill(ENVIRONMENT | own)
            (SCHEMAS / f"{__version__}.sql").write_text(dump(url, find_programs()))
        finally:
            postgres.stop()


def fill(environment: dict[str, str]) -> None:
    """Fill each table that requests of a client can fill."""
    app = new_app(environment)
    client = app.test_client()
    service_role = {"Authorization": f"Bearer {SERVICE_ROLE_KEY}"}
    alice = register(client, service_role, "alice@example.com")
    register(client, service_role, "carol@example.com", role="admin")
    alice.try_to_sign_in("not the password")
    alice.sign_in().put("/user", json={"email": "new@example.com"})
    client.post("/signup", json={"email": "dave@example.com", "password": PASSWORD, "data": {"name": "Dave"}})
    client.post("/admin/webhooks", json={"url": "https://192.0.1.1/events"}, headers=service_role)
    client.post("/magiclink", json={"email": "dave@example.com"})
    sign_up_anonymously(client)
    erin = register(client, service_role, "erin@example.com").sign_in()
    authenticator_app, erin = factors.set_up(erin)
    erin.post("/recovery_codes")
    passkeys.register(erin)
    factors.challenge(erin, authenticator_app)
    frank = register(client, service_role, "frank@example.com")
    removed, session = factors.set_up(frank.sign_in())
    session.delete(f"/factors/{removed.id}")
    Visitor(app).signed_in_as(alice)


def dump(url: str, programs: Path) -> str:
    """Return a dump that any supported Postgres and any client can read."""
    command = [str(programs / "pg_dump"), "--inserts", "--no-owner", "--no-privileges", "--no-comments", url]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    # Drop a setting that Postgres 16 does not support, and commands of psql.
    kept = [
        line for line in text.splitlines() if not line.startswith(("SET transaction_timeout", "\\", "--"))
    ]
    return "\n".join(kept) + "\n"


if __name__ == "__main__":
    main()
