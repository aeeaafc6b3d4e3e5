"""Encrypts and verifies connections to other machines, unless their URL disables it."""

import os
from collections.abc import Iterator, Mapping
from urllib.parse import urlencode

from psycopg2.extensions import parse_dsn

from auth.core.net.networks import is_loopback
from auth.core.net.sockets import root_certificates
from auth.core.settings.values import urls

_VERIFY_FULL = "verify-full"
_VERIFYING = ("verify-ca", _VERIFY_FULL)
_ROOTS_OF_LIBPQ = "~/.postgresql/root.crt"


def remote_hosts(url: str) -> list[str]:
    """Return the hosts in the URL of a Postgres, except sockets and loopback."""
    hosts = [host for name in ("host", "hostaddr") for host in _option(url, name).split(",")]
    return [host for host in hosts if host and not host.startswith("/") and not is_loopback(host)]


def encrypted(url: str) -> str:
    """Return the URL of a Postgres with the `sslmode` of other machines, and the authorities to trust."""
    mode, options = _option(url, "sslmode"), {}
    if not mode and remote_hosts(url):
        mode = options["sslmode"] = _VERIFY_FULL
    has_roots = _option(url, "sslrootcert") or os.path.exists(os.path.expanduser(_ROOTS_OF_LIBPQ))
    if mode == _VERIFY_FULL and not has_roots:
        # libpq before 16 lacks `system`, with which psycopg2's wheel searches the paths of its build machine.
        options["sslrootcert"] = root_certificates()
    # make_dsn does not return a URL.
    bare = url.rstrip("?&")
    return f"{bare}{'&' if '?' in bare else '?'}{urlencode(options)}" if options else url


def notices(databases: Mapping[str, str], smtp_url: str | None) -> Iterator[str]:
    """Yield a line for each connection to another machine that the settings leave unencrypted or unverified.

    `databases` are URLs by the names of their settings.
    """
    for name, url in databases.items():
        mode, hosts = _option(url, "sslmode"), remote_hosts(url) if url else []
        if hosts and mode not in _VERIFYING:
            yield (
                f"{name} has sslmode={mode}: the network from here to {hosts[0]} can read and change what"
                f" passes. Use sslmode={_VERIFY_FULL}, unless that network is yours alone."
            )
    server = None if smtp_url in (None, urls.CONSOLE) else urls.smtp_server(smtp_url)
    if server and not server.implicit_tls and server.starttls != "required" and not is_loopback(server.host):
        yield (
            f"AUTH_SMTP_URL has starttls={server.starttls}: the network from here to {server.host} can read"
            " the links and codes in emails. Use starttls=required, unless that network is yours alone."
        )


def _option(url: str, name: str) -> str:
    return parse_dsn(url).get(name) or os.environ.get(f"PG{name.upper()}", "")
