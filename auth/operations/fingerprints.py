"""Compares the keys of this node with those of the other nodes, by fingerprints in the database."""

from auth.settings import Settings
from auth.tokens import keys, signing_keys
from sql import Database


class OtherKeys(Exception):
    """One line for each setting whose keys differ from those of the database."""


def check(db: Database, settings: Settings) -> None:
    """Raises `OtherKeys` and `psycopg2.Error`."""
    known = {row.setting: row.fingerprints for row in db.all("list_key_fingerprints")}
    _compare(known, settings)


def keep(db: Database, settings: Settings, *, even_others: bool = False) -> None:
    """Replace the stored keys with those of this node, which must have one in common unless `even_others`.

    Replacing drops a key that has been rotated out. Raises `OtherKeys` and `psycopg2.Error`.
    """
    with db.transaction() as tx:
        tx.one("lock_key_fingerprints")
        known = {row.setting: row.fingerprints for row in tx.all("list_key_fingerprints")}
        if not even_others:
            _compare(known, settings)
        for setting, fingerprints in _fingerprints(settings).items():
            tx.run("replace_key_fingerprints", setting=setting, fingerprints=fingerprints)


def _compare(known: dict[str, list[str]], settings: Settings) -> None:
    remedy = (
        "All nodes need the same. To replace it, set new,old;"
        " if the old value is lost, run: latchkey keys accept"
    )
    lines = [
        f"{setting}: Is not what this database was last used with ({_place(setting, settings)}). {remedy}."
        for setting, fingerprints in _fingerprints(settings).items()
        if setting in known and not set(fingerprints) & set(known[setting])
    ]
    if lines:
        raise OtherKeys("\n".join(lines))


def _place(setting: str, settings: Settings) -> str:
    name = "jwt_keys.json" if setting == "AUTH_JWT_KEYS" else setting.removeprefix("AUTH_").lower()
    return f"where unset, it is in {settings.state_dir / name}"


def _fingerprints(settings: Settings) -> dict[str, list[str]]:
    def of(secrets: tuple[str, ...]) -> list[str]:
        return [fingerprint.hex() for fingerprint in keys.derive(secrets, "fingerprint")]

    jwt_secrets = (settings.jwt_secret,) if settings.jwt_secret else ()
    return {
        "AUTH_SECRET_KEY": of(settings.secret_key),
        "AUTH_SERVICE_ROLE_KEY": of(settings.service_role_key),
        # Together: a deployment may move from one to the other.
        "AUTH_JWT_KEYS": of(jwt_secrets) + signing_keys.fingerprints(settings.jwt_keys),
    }
