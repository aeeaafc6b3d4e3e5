"""Foreign relying parties, unmodified, on loopback: openid-client in Node.js, and mod_auth_openidc in Apache."""

import json
import os
import secrets
from abc import ABC, abstractmethod
from contextlib import ExitStack
from pathlib import Path
from typing import Any, ClassVar, Self
from urllib.parse import urlencode, urlsplit

import pytest

from tests.support.browser import Browser
from tests.support.processes import free_port, short_directory
from tests.support.programs import find_program
from tests.support.relying_parties import running

CLIENTS = Path(__file__).parents[2] / "clients"
SCOPES = "openid profile email groups offline_access"


class RelyingParty(ABC):
    """An application of one user, which runs inside the context.

    Its home page is for users that are signed in, and others are sent to the provider. It shows `id_token` (the
    claims), `userinfo`, `access_token` and `refresh_token` as JSON.
    """

    # The members of this party's client, apart from its URIs.
    METADATA: ClassVar[dict[str, Any]] = {}
    # The URL at which the party refreshes and then shows its home page, or `error_code`.
    REFRESH = "/refresh"
    HOME = "/"
    # Its URL for notifications of ended sessions.
    BACKCHANNEL = ""

    def __init__(self, issuer: str) -> None:
        self.issuer = issuer
        self.port = free_port()
        # By its name localhost, it is another site than the issuer at 127.0.0.1.
        self.url = f"http://localhost:{self.port}"
        self.goodbye = f"{self.url}/goodbye"
        self.scopes = SCOPES
        # The URL at which the party signs the user out, at the provider too.
        self.logout = "/logout"
        self._open = ExitStack()

    def registration(self) -> dict[str, Any]:
        """Return what POST /admin/oauth/clients takes."""
        uris = {"redirect_uris": [f"{self.url}/callback"], "post_logout_redirect_uris": [self.goodbye]}
        logout = {"backchannel_logout_uri": f"{self.url}{self.BACKCHANNEL}"} if self.BACKCHANNEL else {}
        return {"client_name": type(self).__name__, **uris, **logout, **self.METADATA}

    def use(self, client: dict[str, Any]) -> Self:
        """Set the registered client."""
        self.client_id, self.client_secret = client["client_id"], client.get("client_secret", "")
        return self

    def __enter__(self) -> Self:
        try:
            self.start(self._open)
        except BaseException:
            self._open.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    @abstractmethod
    def start(self, until_end: ExitStack) -> None:
        """Start the application, and wait until it answers."""

    def refresh(self, page: Browser) -> dict[str, Any] | None:
        """Let it refresh its tokens, and return its session, or None if it could not."""
        page.open(self.url + self.REFRESH)
        page.wait(lambda: urlsplit(page.url).path not in ("/refresh", "/callback"))
        return None if "error_code=" in page.url else self.session(page)

    def session(self, page: Browser) -> dict[str, Any]:
        """Return what its home page shows."""
        page.open(self.url + self.HOME)
        return json.loads(page.text)

    def _run(self, until_end: ExitStack, command: list[str], **environment: str) -> None:
        """Run a program until the end."""
        directory = until_end.enter_context(short_directory())
        environment |= {"PATH": os.environ["PATH"], "HOME": str(directory)}
        until_end.enter_context(running(command, self.url, directory / "output", directory, **environment))


class OpenIdClient(RelyingParty):
    """A public client, which wants ES256 in its id_token."""

    METADATA: ClassVar[dict[str, Any]] = {
        "token_endpoint_auth_method": "none",
        "id_token_signed_response_alg": "ES256",
    }

    def start(self, until_end: ExitStack) -> None:
        node = find_program("node", "nodejs", "OPENID-CLIENT IS NOT TESTED")
        if not (CLIENTS / "node_modules" / "openid-client").is_dir():
            pytest.skip("OPENID-CLIENT IS NOT TESTED: it needs npm, then: make test-browser")
        client = {"ISSUER": self.issuer, "CLIENT_ID": self.client_id, "SCOPES": self.scopes}
        self._run(until_end, [node, str(CLIENTS / "relying-party.mjs")], PORT=str(self.port), **client)


class ModAuthOpenIdc(RelyingParty):
    """Apache in front of a page, by the module of Debian."""

    METADATA: ClassVar[dict[str, Any]] = {"token_endpoint_auth_method": "client_secret_basic"}
    HOME = "/callback?info=json"
    BACKCHANNEL = "/callback?logout=backchannel"

    MODULES = Path("/usr/lib/apache2/modules")
    NEEDED = ("mpm_event", "authn_core", "authz_core", "authz_user", "dir", "auth_openidc")

    def __init__(self, issuer: str) -> None:
        super().__init__(issuer)
        self.logout = f"/callback?{urlencode({'logout': self.goodbye})}"

    def start(self, until_end: ExitStack) -> None:
        program = find_program("apache2", "libapache2-mod-auth-openidc", "MOD_AUTH_OPENIDC IS NOT TESTED")
        if not (self.MODULES / "mod_auth_openidc.so").exists():
            pytest.skip("MOD_AUTH_OPENIDC IS NOT TESTED: apt-get install libapache2-mod-auth-openidc")
        directory = until_end.enter_context(short_directory())
        for name in ("index.html", "goodbye"):
            (directory / name).write_text(name)
        load = "\n".join(f"LoadModule {name}_module {self.MODULES}/mod_{name}.so" for name in self.NEEDED)
        user = "User nobody\nGroup nogroup" if os.geteuid() == 0 else ""
        config = directory / "apache.conf"
        config.write_text(
            f"""{load}
{user}
ServerName localhost
Listen 127.0.0.1:{self.port}
PidFile {directory}/pid
DefaultRuntimeDir {directory}
ErrorLog {directory}/log
DocumentRoot {directory}
OIDCProviderMetadataURL {self.issuer}/.well-known/openid-configuration
OIDCClientID {self.client_id}
OIDCClientSecret {self.client_secret}
OIDCRedirectURI {self.url}/callback
OIDCScope "{self.scopes}"
OIDCPKCEMethod S256
OIDCCryptoPassphrase {secrets.token_hex()}
OIDCUserInfoRefreshInterval 1
OIDCInfoHook access_token id_token refresh_token userinfo
<Location />
  AuthType openid-connect
  Require valid-user
</Location>
<Location /goodbye>
  AuthType none
  Require all granted
</Location>
"""
        )
        self._run(until_end, [program, "-X", "-f", str(config)])

    def refresh(self, page: Browser) -> dict[str, Any] | None:
        try:
            query = {"refresh": f"{self.url}/", "access_token": self.session(page)["access_token"]}
            self.REFRESH = f"/callback?{urlencode(query)}"
            return super().refresh(page)
        except json.JSONDecodeError:  # it was notified that the session has ended
            return None


PARTIES: list[type[RelyingParty]] = [OpenIdClient, ModAuthOpenIdc]
