"""The role of requests, which reads and writes rows, calls functions, and owns nothing.

Requests log in as this role. They do not use SET ROLE, which an injected statement could undo.
"""

import re

import psycopg2
from psycopg2 import sql as composed
from psycopg2.errors import InsufficientPrivilege
from psycopg2.extensions import cursor as Cursor
from psycopg2.extensions import encrypt_password, parse_dsn

from sql import DIRECTORY

GRANTS = DIRECTORY / "grants.sql"
TABLES = re.compile(r"^CREATE (?:UNLOGGED )?TABLE (\w+)", re.MULTILINE)
_FUNCTIONS = re.compile(r"^CREATE OR REPLACE FUNCTION (\w+)", re.MULTILINE)


def has_grants(cursor: Cursor, requests_url: str | None, schema: str) -> bool:
    """Whether the role owns all tables of schema.sql, or has been granted something on each.

    A newer release may have dropped some of them.
    """
    if requests_url is None:
        return True
    cursor.execute(
        """
        SELECT NOT EXISTS (
          SELECT
            FROM unnest(%s) AS name
            JOIN pg_class AS c ON c.oid = to_regclass(name)
           WHERE NOT EXISTS (
                   SELECT
                     FROM aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) AS granted
                     JOIN pg_roles AS r ON r.oid = granted.grantee
                    WHERE r.rolname = %s))
        """,
        (TABLES.findall(schema), _role_of(requests_url)),
    )
    return cursor.fetchone() == (True,)


def grant(cursor: Cursor, requests_url: str | None, definitions: str) -> None:
    """Grant the role the rights of requests, unless it owns the tables. Create it if it is missing.

    `definitions` is the text of schema.sql and of the functions. Raises `psycopg2.Error`.
    """
    if requests_url is None:
        return
    role = _role_of(requests_url)
    cursor.execute(
        """
        SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = %s), pg_get_userbyid(relowner), current_schema()
          FROM pg_class
         WHERE oid = 'schema_version'::regclass
        """,
        (role,),
    )
    exists, owner, schema_name = cursor.fetchone() or ()
    if role == owner:
        return
    if not exists:
        _create_role(cursor, role, parse_dsn(requests_url).get("password"), owner)
    cursor.execute(
        "SELECT string_agg(to_regclass(name)::text, ', ') FROM unnest(%s) AS name",
        (TABLES.findall(definitions),),
    )
    (tables,) = cursor.fetchone() or ()
    names = {
        "schema": composed.Identifier(schema_name),
        "role": composed.Identifier(role),
        "tables": composed.SQL(tables),
        "functions": _functions_of_owner(cursor, definitions),
    }
    cursor.execute(composed.SQL(GRANTS.read_text(encoding="utf-8")).format(**names))


def revoke_from_all_roles(cursor: Cursor, definitions: str) -> None:
    """Let no other role call what runs as the owner. Postgres lets all roles call a new function."""
    functions = _functions_of_owner(cursor, definitions)
    cursor.execute(composed.SQL("REVOKE ALL ON FUNCTION {} FROM PUBLIC").format(functions))


def _functions_of_owner(cursor: Cursor, definitions: str) -> composed.SQL:
    """Return the list of the functions that run as the owner, as Postgres quotes them."""
    cursor.execute(
        """
        SELECT string_agg(oid::regprocedure::text, ', ')
          FROM pg_proc
         WHERE prosecdef AND pronamespace = quote_ident(current_schema())::regnamespace AND proname = ANY (%s)
        """,
        (_FUNCTIONS.findall(definitions),),
    )
    (functions,) = cursor.fetchone() or ()
    return composed.SQL(functions)


def _create_role(cursor: Cursor, role: str, password: str | None, owner: str) -> None:
    # The owner is a member, to see the activity of its sessions.
    names = map(composed.Identifier, (role, owner))
    create = composed.SQL("CREATE ROLE {} LOGIN ROLE {}").format(*names)
    if password:
        # Hash the password here, because the log of Postgres may contain its statements.
        password_hash = encrypt_password(password, role, cursor.connection, "scram-sha-256")
        create += composed.SQL(" PASSWORD {}").format(composed.Literal(password_hash))
    try:
        cursor.execute(create)
    except InsufficientPrivilege:
        raise psycopg2.ProgrammingError(
            f"there is no role {role}, and the owner of the tables may not make it. Make it, with the"
            f" password in DATABASE_URL: CREATE ROLE {role} LOGIN ROLE {owner} PASSWORD '…'"
        ) from None


def _role_of(url: str) -> str:
    return str(parse_dsn(url)["user"])
