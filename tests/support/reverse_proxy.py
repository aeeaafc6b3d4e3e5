"""A reverse proxy as people set it up, well or badly."""

import requests

from tests.support.local_server import Handler, LocalServer
from tests.support.smtp_server import Certificate


class ReverseProxy(LocalServer):
    """Forwards GET to a URL. `forwards` is what it does with X-Forwarded-For: `append`, `replace` or `keep`."""

    def __init__(
        self, target: str, forwards: str = "append", proto: str | None = None, tls: Certificate | None = None
    ) -> None:
        class Forwarder(Handler):
            def do_GET(self) -> None:
                headers = {name: value for name, value in self.headers.items() if name != "Host"}
                forwarded = headers.get("X-Forwarded-For")
                peer = self.client_address[0]
                if forwards == "replace" or (forwards == "append" and not forwarded):
                    headers["X-Forwarded-For"] = peer
                elif forwards == "append":
                    headers["X-Forwarded-For"] = f"{forwarded}, {peer}"
                if proto:
                    headers["X-Forwarded-Proto"] = proto
                response = requests.get(target + self.path, headers=headers, timeout=60)
                media_type = {"Content-Type": response.headers["Content-Type"]}
                self.reply(response.status_code, media_type, response.content)

        super().__init__(Forwarder, tls)
