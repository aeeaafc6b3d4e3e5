"""A real OpenID provider on loopback: django-oauth-toolkit, set up according to its documentation.

It has a log-in form with a session and a CSRF cookie, a consent page, and requires PKCE; it sends `iss` (RFC
9207). It shares no code with the client under test, which uses Authlib. This file is also the program that
runs it in a separate process.
"""

import subprocess
import sys
from pathlib import Path
from typing import Any, Self
from urllib.parse import parse_qs, urlencode, urlsplit

import requests

from tests.support.links import CHALLENGE, VERIFIER
from tests.support.processes import CHECKOUT, free_port, wait_until
from tests.support.user_agent import UserAgent

CLIENT_ID, CLIENT_SECRET = "latchkey-at-django", "a-secret-that-django-knows-too"
PASSWORD = "the-password-of-all-people-there"
# The users by name, with their claims about the address in the words of OpenID Connect.
PEOPLE: dict[str, dict[str, Any]] = {
    "alice": {"email": "Alice@Example.com", "email_verified": True, "name": "Alice Liddell"},
    "bob": {"email": "bob@example.com", "email_verified": False, "name": "Bob"},
    "dave": {"email": "dave@example.com", "email_verified": True, "name": "Dave"},
}


class OidcProvider:
    """The provider, healthy inside the context. `issuer` is the base of discovery."""

    def __init__(self, directory: Path, *redirect_uris: str) -> None:
        self.port = free_port()
        self.origin = f"http://127.0.0.1:{self.port}"
        self.issuer = f"{self.origin}/o"
        self._output = directory / "output"
        self._arguments = [str(directory), str(self.port), *redirect_uris]

    def __enter__(self) -> Self:
        with self._output.open("wb") as output:
            command = [sys.executable, "-m", "tests.support.oidc_provider", *self._arguments]
            self._process = subprocess.Popen(
                command, cwd=CHECKOUT, stdin=subprocess.DEVNULL, stdout=output, stderr=output
            )
        try:
            wait_until(self._answers, 90)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()

    def id_token(self, person: str, redirect_uri: str) -> str:
        """Return an id_token as a native application gets it: log in, agree, and redeem the code."""
        browser = UserAgent()
        query = {"response_type": "code", "client_id": CLIENT_ID, "redirect_uri": redirect_uri}
        query |= {
            "scope": "openid email profile",
            "code_challenge_method": "S256",
            "code_challenge": CHALLENGE,
        }
        browser.visit(f"{self.issuer}/authorize/?{urlencode(query)}")
        browser.submit(username=person, password=PASSWORD)
        page = browser.submit(allow="Authorize", stop=lambda url: url.startswith(redirect_uri))
        (code,) = parse_qs(urlsplit(page.url).query)["code"]
        form = {"grant_type": "authorization_code", "code": code, "redirect_uri": redirect_uri}
        form |= {"client_id": CLIENT_ID, "client_secret": CLIENT_SECRET, "code_verifier": VERIFIER}
        return requests.post(f"{self.issuer}/token/", data=form, timeout=60).json()["id_token"]

    def _answers(self) -> bool:
        assert self._process.poll() is None, (
            f"it ended with {self._process.returncode}: {self._output.read_text()}"
        )
        try:
            return requests.get(f"{self.issuer}/.well-known/openid-configuration", timeout=60).ok
        except requests.ConnectionError:
            return False


def serve(directory: Path, port: int, redirect_uris: list[str]) -> None:
    """Serve until killed."""
    import django
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa
    from django.conf import settings
    from django.core.management import call_command
    from django.core.wsgi import get_wsgi_application
    from werkzeug.serving import make_server

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    form = "<!doctype html><form method=post>{% csrf_token %}{{ form }}<button>Log in</button></form>"
    apps = [
        "django.contrib.auth",
        "django.contrib.contenttypes",
        "django.contrib.sessions",
        "oauth2_provider",
    ]
    settings.configure(
        SECRET_KEY="of a provider for tests",
        ALLOWED_HOSTS=["127.0.0.1"],
        ROOT_URLCONF="tests.support.oidc_provider",
        INSTALLED_APPS=apps,
        MIDDLEWARE=[
            "django.middleware.security.SecurityMiddleware",
            "django.contrib.sessions.middleware.SessionMiddleware",
            "django.middleware.csrf.CsrfViewMiddleware",
            "django.contrib.auth.middleware.AuthenticationMiddleware",
        ],
        TEMPLATES=[
            {
                "BACKEND": "django.template.backends.django.DjangoTemplates",
                "OPTIONS": {
                    "loaders": [
                        ("django.template.loaders.locmem.Loader", {"registration/login.html": form}),
                        "django.template.loaders.app_directories.Loader",
                    ],
                    "context_processors": ["django.template.context_processors.request"],
                },
            }
        ],
        DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": directory / "people.sqlite3"}},
        # Create the current tables directly, without running migrations.
        MIGRATION_MODULES={app.rpartition(".")[2]: None for app in apps},
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
        PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"],
        LOGIN_URL="/login/",
        USE_TZ=True,
        OAUTH2_PROVIDER={
            "OIDC_ENABLED": True,
            "OIDC_ISS_ENDPOINT": f"http://127.0.0.1:{port}/o",
            "OIDC_RSA_PRIVATE_KEY": key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            ).decode(),
            "OAUTH2_VALIDATOR_CLASS": validator,
            "SCOPES": {"openid": "Who you are", "email": "Your address", "profile": "Your name"},
            "PKCE_REQUIRED": True,
            "COMPLIANT_BCP_RFC9700_PKCE_METHOD": True,
            "COMPLIANT_BCP_RFC9700_AUTHZ_RESPONSE_ISS": True,
        },
    )
    django.setup()
    call_command("migrate", run_syncdb=True, verbosity=0)

    from django.contrib.auth.models import User
    from oauth2_provider.models import Application

    for username, claims in PEOPLE.items():
        User.objects.create_user(username, claims["email"], PASSWORD)
    Application.objects.create(
        client_id=CLIENT_ID,
        client_secret=CLIENT_SECRET,
        client_type=Application.CLIENT_CONFIDENTIAL,
        authorization_grant_type=Application.GRANT_AUTHORIZATION_CODE,
        algorithm=Application.RS256_ALGORITHM,
        redirect_uris=" ".join(redirect_uris),
        name="Latchkey",
    )
    make_server("127.0.0.1", port, get_wsgi_application(), threaded=True).serve_forever()


def validator() -> Any:
    """Return the validator that adds a user's claims, after the documentation ("Customizing the OIDC
    responses").
    """
    from oauth2_provider.oauth2_validators import OAuth2Validator

    class Validator(OAuth2Validator):
        oidc_claim_scope = OAuth2Validator.oidc_claim_scope | {"email_verified": "email"}

        def get_additional_claims(self) -> dict[str, Any]:
            return {
                name: lambda request, name=name: PEOPLE[request.user.username][name]
                for name in ("email", "email_verified", "name")
            }

    return Validator()


def __getattr__(name: str) -> Any:
    """Serve Django's look-up of URL patterns in this module, its ROOT_URLCONF, after the setup."""
    if name != "urlpatterns":
        raise AttributeError(name)
    from django.contrib.auth.views import LoginView
    from django.urls import include, path

    return [path("o/", include("oauth2_provider.urls")), path("login/", LoginView.as_view())]


if __name__ == "__main__":
    serve(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
