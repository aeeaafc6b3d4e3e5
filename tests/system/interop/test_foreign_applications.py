"""Applications by other hands, from their registries, with the settings that `latchkey clients create --for` prints:
each signs a user in at the service, in Chromium.
"""

import os
import secrets
import shlex
import shutil
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from auth.extensions.openid.command.products import PRODUCTS
from tests.support.browser import Browser
from tests.support.commands import run_command
from tests.support.postgres import Postgres
from tests.support.processes import free_port, short_directory, wait_until
from tests.support.relying_parties import TELLS, allow, end_session, running, sign_in
from tests.support.tcp_proxy import TcpProxy

pytest_plugins = ["tests.support.browser_fixtures"]

APPLICATIONS = Path(__file__).parent / "applications"


def variables(settings: str) -> dict[str, str]:
    """Return the environment that lines set."""
    return dict(each.split("=", 1) for each in shlex.split(settings, comments=True))


class Application(ABC):
    """An application at its own port. There is a class for each tested name of `--for`."""

    # The page where a user begins to sign in, a button there, and the element that shows the user.
    START: ClassVar[str] = "/"
    BUTTON: ClassVar[str] = ""
    PROOF: ClassVar[str] = "/"
    postgres: Postgres | None = None

    def __init__(self, directory: Path, make_python: Callable[[Path], Path]) -> None:
        self.directory, self._make_python = directory, make_python
        self.port = free_port()
        # By its name localhost, it is another site than the service.
        self.url = f"http://localhost:{self.port}"
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(directory), "PORT": str(self.port)}

    def python(self, name: str) -> Path:
        """Return the programs of an environment for the application."""
        return self._make_python(APPLICATIONS / name / "requirements.txt")

    @abstractmethod
    def command(self, settings: str) -> list[str]:
        """Configure the application, and return what runs it."""

    def stop_database(self) -> None:
        """Stop the database of the application, if it needs one."""
        if self.postgres:
            self.postgres.stop()

    def proves(self, page: Browser, email: str) -> None:
        """Wait until the application shows who is signed in."""
        page.open(f"{self.url}{self.PROOF}")
        page.wait_for(email)


class AuthJs(Application):
    START, BUTTON = "/auth/signin", "Sign in with Latchkey"

    def command(self, settings: str) -> list[str]:
        if not (APPLICATIONS / "authjs" / "node_modules").is_dir():
            pytest.skip("NOT TESTED: Auth.js, which needs npm, then: make test-interop")
        self.environment["PROVIDER"] = settings.partition("\n")[2]
        return ["node", str(APPLICATIONS / "authjs" / "server.mjs")]


class JupyterHub(Application):
    START, PROOF = "/hub/oauth_login", "/hub/home"

    def command(self, settings: str) -> list[str]:
        config = self.directory / "jupyterhub_config.py"
        config.write_text((APPLICATIONS / "jupyterhub" / "without_proxy.py").read_text() + settings)
        return [str(self.python("jupyterhub") / "jupyterhub"), "--config", str(config)]


class Django(Application):
    START = "/oidc/authenticate/"

    def command(self, settings: str) -> list[str]:
        project = self.directory / "project.py"
        project.write_text(settings + (APPLICATIONS / "django" / "project.py").read_text())
        return [str(self.python("django") / "python"), str(project)]


class PgAdmin(Application):
    BUTTON, PROOF = "Login with Latchkey", "/browser/"

    def command(self, settings: str) -> list[str]:
        names = "DATA_DIR LOG_FILE SQLITE_PATH SESSION_DB_PATH STORAGE_DIR KERBEROS_CCACHE_DIR"
        names += " AZURE_CREDENTIAL_CACHE_DIR"
        paths = {name: str(self.directory / name.lower()) for name in names.split()}
        own_settings = paths | {"DEFAULT_SERVER_PORT": self.port, "UPGRADE_CHECK_ENABLED": False}
        lines = "".join(f"{name} = {value!r}\n" for name, value in own_settings.items())
        (self.directory / "config_local.py").write_text(settings + lines)
        self.environment |= {
            "PYTHONPATH": str(self.directory),
            "PGADMIN_SETUP_EMAIL": "admin@example.com",
            "PGADMIN_SETUP_PASSWORD": secrets.token_hex(),
        }
        return [str(self.python("pgadmin") / "pgadmin4")]


class Streamlit(Application):
    BUTTON = "Sign in"

    def command(self, settings: str) -> list[str]:
        (self.directory / ".streamlit").mkdir()
        secret = f'cookie_secret = "{secrets.token_hex()}"\n'
        (self.directory / ".streamlit" / "secrets.toml").write_text(settings + secret)
        options = ["--server.port", str(self.port), "--server.headless", "true"]
        options += ["--server.address", "127.0.0.1", "--browser.gatherUsageStats", "false"]
        return [
            str(self.python("streamlit") / "streamlit"),
            "run",
            str(APPLICATIONS / "streamlit" / "app.py"),
            *options,
        ]


class Miniflux(Application):
    START, PROOF = "/oauth2/oidc/redirect", "/settings"

    def command(self, settings: str) -> list[str]:
        if not shutil.which("go"):
            pytest.skip("NOT TESTED: Miniflux, which needs go")
        program = APPLICATIONS / "miniflux" / "target" / "miniflux"
        build = ["go", "build", "-o", str(program), "miniflux.app/v2"]
        subprocess.run(build, cwd=APPLICATIONS / "miniflux", check=True)
        self.postgres = Postgres(self.directory / "postgres")
        self.environment |= variables(settings) | {
            "DATABASE_URL": self.postgres.url,
            "RUN_MIGRATIONS": "1",
            "LISTEN_ADDR": f"127.0.0.1:{self.port}",
            "BASE_URL": self.url,
        }
        return [str(program)]

    def proves(self, page: Browser, email: str) -> None:
        page.open(f"{self.url}{self.PROOF}")
        # The user is named only in the hint of a button.
        page.wait(lambda: email in page.run("document.querySelector('.logout-button')?.title ?? ''"))


class Synapse(Application):
    """Returns the browser with a token, by which a Matrix client logs in."""

    START = "/_matrix/client/v3/login/sso/redirect/oidc-latchkey?redirectUrl={url}/_matrix/client/versions"

    def command(self, settings: str) -> list[str]:
        config = self.directory / "homeserver.yaml"
        skip = "  skip_verification: true  # of the https in our issuer\n"
        config.write_text(
            f"""{settings}{skip}
server_name: localhost
public_baseurl: {self.url}
sso: {{client_whitelist: ["{self.url}"]}}
listeners: [{{port: {self.port}, type: http, bind_addresses: [127.0.0.1], resources: [{{names: [client]}}]}}]
database: {{name: sqlite3, args: {{database: {self.directory}/database}}}}
signing_key_path: {self.directory}/key
media_store_path: {self.directory}/media
macaroon_secret_key: {secrets.token_hex()}
registration_shared_secret: {secrets.token_hex()}
report_stats: false
trusted_key_servers: []
"""
        )
        homeserver = [str(self.python("synapse") / "python"), "-m", "synapse.app.homeserver"]
        homeserver += ["--config-path", str(config)]
        subprocess.run([*homeserver, "--generate-keys"], check=True, cwd=self.directory, env=self.environment)
        return homeserver

    def proves(self, page: Browser, email: str) -> None:
        page.wait(lambda: "loginToken=" in page.url)
        (token,) = parse_qs(urlsplit(page.url).query)["loginToken"]
        body = {"type": "m.login.token", "token": token}
        session = httpx.post(f"{self.url}/_matrix/client/v3/login", json=body).json()
        assert session["user_id"] == "@alice:localhost"
        self.headers = {"Authorization": f"Bearer {session['access_token']}"}
        assert self.whoami() == 200
        account = httpx.get(f"{self.url}/_matrix/client/v3/account/3pid", headers=self.headers).json()
        assert [each["address"] for each in account["threepids"]] == [email]

    def whoami(self) -> int:
        """Return the status of the user's session."""
        return httpx.get(f"{self.url}/_matrix/client/v3/account/whoami", headers=self.headers).status_code


TESTED: dict[str, type[Application]] = {
    "authjs": AuthJs,
    "jupyterhub": JupyterHub,
    "miniflux": Miniflux,
    "mozilla-django-oidc": Django,
    "pgadmin": PgAdmin,
    "streamlit": Streamlit,
    "synapse": Synapse,
}


@pytest.fixture(scope="module")
def settings() -> dict[str, str]:
    return TELLS


@pytest.fixture
def start(make_app, make_python, here, request) -> Callable[..., Application]:
    """Return a function that starts an application of TESTED as the command says."""

    def start(name: str, *options: str) -> Application:
        directory = use(short_directory())
        application = TESTED[name](directory, make_python)
        request.addfinalizer(application.stop_database)
        arguments = (name, f"{application.url}{PRODUCTS[name].callback}", "--for", name, *options)
        created = run_command(
            make_app(AUTH_BASE_URL=here, AUTH_WEBHOOK_PRIVATE_NETWORKS="true"),
            "clients",
            "create",
            *(each.format(url=application.url) for each in arguments),
        )
        assert created.exit_code == 0, created.output
        command = application.command(created.output)
        use(running(command, application.url, directory / "output", directory, **application.environment))
        return application

    def use(context: Any) -> Any:
        value = context.__enter__()
        request.addfinalizer(lambda: context.__exit__(None, None, None))
        return value

    return start


def enter(page: Browser, application: Application, name: str, alice: Any) -> None:
    """Sign Alice in at an application."""
    page.open(f"{application.url}{application.START.format(url=application.url)}")
    if application.BUTTON:
        page.wait_for(application.BUTTON)
        page.click(application.BUTTON)
    sign_in(page, alice)
    allow(page, name)
    page.wait(lambda: page.url.startswith(application.url) and "/callback" not in page.url)
    application.proves(page, alice.email)


@pytest.mark.parametrize("name", TESTED)
def test_user_signs_in_with_the_settings_of_the_command(page, start, alice, name):
    enter(page, start(name), name, alice)


def test_synapse_that_is_down_for_twenty_minutes_accepts_the_token_of_that_moment(
    page, start, database, alice, site, service_role
):
    with TcpProxy(None) as proxy:
        path = "/_synapse/client/oidc/backchannel_logout"
        synapse = start("synapse", "--backchannel-logout-uri", f"http://localhost:{proxy.port}{path}")
        enter(page, synapse, "synapse", alice)
        end_session("ban", site, service_role, alice)
        wait_until(lambda: database.count("outbox", "channel = 'logout' AND attempts > 0"))
        assert synapse.whoami() == 200
        database.run(
            "UPDATE outbox SET created_at = created_at - interval '20 minutes',"
            " expires_at = expires_at - interval '20 minutes', next_attempt_at = now() WHERE channel = 'logout'"
        )
        proxy.lead_to(("127.0.0.1", synapse.port))
        wait_until(lambda: synapse.whoami() == 401)
