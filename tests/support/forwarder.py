"""A proxy in front of Postgres, or another server, that can be closed and opened."""

from psycopg2.extensions import make_dsn, parse_dsn

from tests.support.tcp_proxy import TcpProxy, postgres_target


class Forwarder(TcpProxy):
    """Forwards connections to the Postgres of a URL, or another server, while it is open."""

    def __init__(self, url: str) -> None:
        super().__init__(postgres_target(url))
        self._parts = parse_dsn(url)
        self.url = make_dsn(url, host="127.0.0.1", port=self.port, sslmode="disable")

    @property
    def database_url(self) -> str:
        """The same as a setting of a service."""
        return f"postgresql://{self._parts['user']}@127.0.0.1:{self.port}/{self._parts['dbname']}"
