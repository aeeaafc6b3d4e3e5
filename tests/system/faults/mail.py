"""The mailbox of the load: a test puts a good or a bad mail server behind its address."""

import re
import threading
from typing import Any, Self

from tests.support.smtp_server import MailServer
from tests.support.tcp_proxy import TcpProxy

_ID = re.compile(r"<([0-9a-f-]{36})@")


class Post:
    """A mail server, and the received mails by message id. `way` connects to it, or to another server."""

    def __init__(self) -> None:
        self._server = _Server(self)
        self._arrived = threading.Condition()
        self._mails: dict[str, list[tuple[str, ...]]] = {}
        self._newest: dict[str, str] = {}

    def __enter__(self) -> Self:
        self._server.__enter__()
        self.way = TcpProxy(("127.0.0.1", self._server.port))
        self.url = f"smtp://127.0.0.1:{self.way.port}"
        return self

    def __exit__(self, *_: object) -> None:
        self.way.close()
        self._server.__exit__()

    def restore(self) -> None:
        """Connect to the good server again."""
        self.way.lead_to(("127.0.0.1", self._server.port))

    def take(self, mail: Any) -> None:
        part = mail.get_body(("plain",))
        match = _ID.match(mail["Message-ID"])
        with self._arrived:
            self._mails.setdefault(match[1] if match else "no id", []).append(
                (mail["To"], mail["Subject"], part.get_content())
            )
            self._newest[mail["To"]] = part.get_content()
            self._arrived.notify_all()

    def wait_for(self, recipient: str, seconds: float) -> str | None:
        """Return the text of a mail to a recipient, or None if none arrives in time."""
        with self._arrived:
            self._arrived.wait_for(lambda: recipient in self._newest, seconds)
            return self._newest.get(recipient)

    def by_id(self) -> dict[str, list[tuple[str, ...]]]:
        """Return recipient, subject and text of each mail, by the id of its message."""
        with self._arrived:
            return {id: list(mails) for id, mails in self._mails.items()}


class _Server(MailServer):
    """Passes each mail on to the post."""

    def __init__(self, post: Post) -> None:
        super().__init__()
        self._post = post

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        answer = await super().handle_DATA(server, session, envelope)
        if self.mails:
            self._post.take(self.mails.pop())
        return answer
