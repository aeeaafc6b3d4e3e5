"""The proxy by its former name."""

from tests.support.tcp_proxy import TcpProxy, postgres_target

__all__ = ["Way", "postgres_target"]


class Way(TcpProxy):
    end = TcpProxy.close
