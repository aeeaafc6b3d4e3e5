"""Settings: read from the environment and `.env` once, checked, and never printed."""

import json
import secrets
import uuid

import pytest

from auth.core import settings
from auth.core.settings import SettingsError, state
from auth.core.settings.values import validators
from tests.core.tokens.test_access_tokens import private_jwk
from tests.support.cases import cases
from tests.support.environment import secret

SECRET = "a secret of at least 32 characters"
A_UUID = "7C4E0A52-5c1f-4d3c-9d5e-2a1f0c9b8e77"


def error_of(load, **environment):
    with pytest.raises(SettingsError) as caught:
        load(**environment)
    return str(caught.value)


def problems(load, **environment):
    """Return the lines of the `SettingsError`: variables and their problems."""
    return dict(line.split(": ", 1) for line in error_of(load, **environment).splitlines())


def test_public_addresses_default_to_each_other(load):
    loaded = load(PORT="9000")
    assert (loaded.base_url, loaded.site_url, loaded.jwt_issuer) == ("http://localhost:9000",) * 3
    loaded = load(AUTH_BASE_URL="https://auth.example.com/")
    assert (loaded.base_url, loaded.site_url, loaded.jwt_issuer) == ("https://auth.example.com",) * 3
    loaded = load(AUTH_SITE_URL="https://app.example.com/start")
    assert loaded.site_login_url == "https://app.example.com/start"
    allowed = {"AUTH_REDIRECT_ALLOW_LIST": "https://login.example.com/**"}
    login = "https://login.example.com/start?iss=https://auth.example.com"
    assert load(AUTH_SITE_LOGIN_URL=login, **allowed).site_login_url == login


class TestParsing:
    @cases(
        ("text", "value"),
        [
            *((text, True) for text in ("true", "True", "1", "yes", "on")),
            *((text, False) for text in ("false", "False", "0", "no", "off")),
        ],
    )
    def test_flag_is_true_or_false(self, load, text, value):
        assert load(AUTH_AUTOCONFIRM=text).autoconfirm is value

    def test_session_timebox_is_by_default_no_less_than_the_lifetime_of_refresh_tokens(self, load):
        lifetime = {"AUTH_REFRESH_TOKEN_LIFETIME": str(401 * 86_400)}
        assert load(**lifetime).session_timebox == 401 * 86_400
        assert load(**lifetime, AUTH_SESSION_TIMEBOX="3600").session_timebox == 3600

    def test_environment_takes_precedence_over_the_dotenv_file(self, load, tmp_path):
        (tmp_path / ".env").write_text("AUTH_JWT_AUDIENCE=from-the-file\nAUTH_AUTOCONFIRM=true\n")
        loaded = load(AUTH_AUTOCONFIRM="false")
        assert (loaded.jwt_audience, loaded.autoconfirm) == ("from-the-file", False)

    def test_malformed_lines_of_the_dotenv_file_are_errors_without_their_values(self, load, tmp_path):
        path = tmp_path / ".env"
        path.write_text("# a\n\nPORT=1\nAUTH_SECRET_KEY topsecret\nexport AUTH_BIND='::'\nPORT\nX='a\n")
        lines = [f"{path}: Line {number} must be NAME=value." for number in (4, 6, 7)]
        assert error_of(load).splitlines() == lines

    def test_unreadable_dotenv_file_is_an_error(self, load, tmp_path):
        path = tmp_path / ".env"
        path.write_bytes(b"AUTH_BRAND_NAME=Caf\xe9\n")
        assert error_of(load) == f"{path}: Must be text in UTF-8."

    @cases(
        ("hosts", "is_local"),
        [
            ("localhost:8000 127.0.0.1 127.1.2.3 [::1]:8000 auth.localhost", True),
            ("192.168.0.1 localhost.example.com notlocalhost auth.example.com", False),
        ],
    )
    def test_base_url_of_this_machine_is_local(self, load, hosts, is_local):
        assert {load(AUTH_BASE_URL=f"http://{host}").is_local for host in hosts.split()} == {is_local}


def without_d(jwk):
    return {name: value for name, value in jwk.items() if name != "d"}


INVALID = {
    "DATABASE_URL": ["mysql://localhost/x", "host=localhost"],
    "PORT": ["0", "65536", "http"],
    "AUTH_WORKERS": ["0"],
    "AUTH_BASE_URL": [
        *("a.example", "ftp://a.example", "https://", "https://a.example?x=1", "https://a.example#x"),
        *("https://user:pass@a.example", "https://a.example:99999"),
    ],
    "AUTH_SITE_URL": ["app.example.com", "https://app.example.com:99999", "https://app.example.com/a b"],
    "AUTH_BACKUP_RECIPIENTS": ["age1q"],
    "AUTH_REDIRECT_ALLOW_LIST": [
        *("app.example.com", "https://a.example/**/b", "*", "**", "https://**", "http://**", "https://a/x**"),
        *("https://**.a.example/**", "myapp://**.x", "myapp://**/x", "javascript://**", "data://**", "://**"),
        "https://good.example,https://bad.example:99999",
    ],
    "AUTH_CORS_ORIGINS": ["https://*.example.com", "app.example.com", "https://app.example.com/path"],
    "AUTH_TOKEN_CLAIMS": ["{", '{"plan": "user_metadata.plan"}', '{"role": "app_metadata.role"}'],
    "AUTH_OAUTH_API_SCOPES": [
        *(
            "{",
            "[]",
            "1",
            '{"https://api.example": []}',
            '{"https://api.example": ""}',
            '{"https://api.example": " "}',
        ),
        *('{"api": "read"}', '{"https://api.example#x": "read"}', '{"https://api.example": "openid"}'),
        *('{"https://api.example": "organization:acme"}', '{"https://api.example": "\\""}'),
        '{"https://api.example": "a", "https://api.example": "b"}',
        '{"https://api.example": "a", "https://api.example/": "b"}',
    ],
    "AUTH_ID_CLAIMS": ['{"groups": "app_metadata.teams"}', '{"level": "session.aal"}'],
    "AUTH_SIGNUP_DOMAINS": ["alice@example.com", "*.example.com", "com", ",", "/no/such/file", "/dev/null"],
    "AUTH_SIGNUP_BLOCKED_DOMAINS": ["example.com,b c.example", "/"],
    "AUTH_SECRET_KEY": ["short", f"{secret('n')},short", f"{secret('n')},{'01234567' * 4}"],
    "AUTH_SERVICE_ROLE_KEY": ["x" * 31],
    "AUTH_JWT_SECRET": ["x" * 31],
    "AUTH_JWT_KEYS": ["{}", '{"keys": []}', "{", "/no/such/file"],
    "AUTH_ACCESS_TOKEN_LIFETIME": ["0", "1h"],
    "AUTH_REFRESH_TOKEN_LIFETIME": ["-1"],
    "AUTH_REFRESH_REUSE_INTERVAL": ["-1"],
    "AUTH_SESSION_TIMEBOX": ["59", "315360001", "400 days"],
    "AUTH_SESSIONS_PER_USER": ["0"],
    "AUTH_AUTOCONFIRM": ["maybe"],
    "AUTH_PASSWORD_MIN_LENGTH": ["0"],
    "AUTH_PASSWORD_REQUIREMENTS": ["lowercase,emoji"],
    "AUTH_BCRYPT_COST": ["3", "32"],
    "AUTH_REAUTHENTICATION_AGE": ["sometimes", "-1"],
    "AUTH_LOG_FORMAT": ["xml"],
    "AUTH_LOG_LEVEL": ["loud"],
    "AUTH_SMTP_URL": ["mail.example.com"],
    "AUTH_RATE_LIMIT_LOGIN": ["30", "lots", "0 per minute", "1.5 per minute", "5 per minute; 6 per hour"],
    "AUTH_RATE_LIMIT_STORAGE": ["mysql://x", "redis:", "postgresql://elsewhere/db", "memory"],
}


class TestInvalidValues:
    @cases(("name", "value"), [(name, value) for name, values in INVALID.items() for value in values])
    def test_invalid_value_is_reported_with_its_variable(self, load, name, value):
        lines = problems(load, **{name: value})
        assert list(lines) == [name]
        assert len(lines[name]) > 10

    @cases(
        ("pattern", "instead"),
        [
            ("https://**", "https://*.example.com/**"),
            ("https://**.a.example/**", "https://*.example.com/**"),
            ("myapp://**/x", "myapp://**"),
            ("https://a.example/**/b", "* for one segment, and /** for the rest"),
            ("myapp://callback/x**", "* for one segment, and /** for the rest"),
        ],
    )
    def test_refused_pattern_is_told_what_to_write_instead(self, load, pattern, instead):
        line = problems(load, AUTH_REDIRECT_ALLOW_LIST=pattern)["AUTH_REDIRECT_ALLOW_LIST"]
        assert f". Write {instead}. " in line or f". Write one such as {instead}. " in line

    def test_all_invalid_values_are_reported_together(self, load):
        values = {name: values[0] for name, values in INVALID.items()}
        assert set(problems(load, **values)) == set(values)

    @cases(
        "jwk",
        [
            private_jwk("RS256") | {"alg": "HS256"},
            without_d(private_jwk("ES256")),
            private_jwk("ES256") | {"crv": "P-384"},
            {"kty": "oct", "k": "c2VjcmV0" * 6, "alg": "HS256"},  # without a kid
            {"kty": "oct", "k": "c2VjcmV0" * 2, "kid": "a"},  # too short
            private_jwk("ES256") | {"key_ops": ["verify"]},
            private_jwk("ES256") | {"key_ops": ["encrypt"]},
        ],
    )
    def test_key_that_cannot_sign_is_reported_without_its_contents(self, load, jwk):
        (problem,) = problems(load, AUTH_JWT_KEYS=json.dumps({"keys": [jwk]})).values()
        assert "JWK Set" in problem
        for member in ("d", "k", "x", "n", "p"):
            assert str(jwk.get(member, "absent")) not in problem


MAY_BE_EMPTY = [
    *("AUTH_OAUTH_REDIRECT_SCHEMES", "AUTH_CAPTCHA_ROUTES"),
    *("AUTH_REDIRECT_ALLOW_LIST", "AUTH_BACKUP_RECIPIENTS", "AUTH_PASSWORD_REQUIREMENTS"),
    *("AUTH_CORS_ORIGINS", "AUTH_SMS_COUNTRIES"),
]
AUDIENCE = "Is second_step or a UUID, which only other tokens have. Use another name, such as authenticated."
BIND = "Must be an address such as 127.0.0.1 or ::1. Set the port by PORT."
LOGIN_URL = "Must be a URL such as https://example.com/path, without a user or fragment."
ELSEWHERE = "Must be at the origin of AUTH_SITE_URL, or match AUTH_REDIRECT_ALLOW_LIST."
CLIENT_AUDIENCE = "Is the audience of tokens of applications. Use another name, such as authenticated."
PGBOUNCER = "Has the parameter pgbouncer, which libpq does not know. Remove it."
HOOK_SECRET = "Must be whsec_ and 24 to 64 random bytes in base64. Make one with latchkey hooks secret."


class TestEmptyValues:
    @cases("value", ["", " "])
    @cases("name", [name for name in settings.names() if name not in MAY_BE_EMPTY])
    def test_empty_value_is_refused(self, load, tmp_path, name, value):
        assert problems(load, **{name: value}) == {name: "Is empty. Unset it or give it a value."}
        assert list(tmp_path.iterdir()) == [tmp_path / "var"]

    @cases("name", MAY_BE_EMPTY)
    def test_empty_list_has_no_members(self, load, name):
        assert getattr(load(**{name: ""}), name.removeprefix("AUTH_").lower()) == ()


class TestProblems:
    @cases(
        ("name", "value", "problem"),
        [
            ("AUTH_AUTOCONFIRM", "maybe", "Must be true or false."),
            ("PORT", "70000", "Must be a whole number from 1 to 65535."),
            ("AUTH_AUDIT_RETENTION", "0", "Must be a whole number of days from 1 to 36500."),
            ("AUTH_SESSION_TIMEBOX", "1", "Must be a whole number of seconds from 60 to 315360000, or none."),
            ("AUTH_HOOK_SEND_SMS_SECRETS", "v1,whsec_ü", HOOK_SECRET),
            *(
                (name, "https://*.example.com", "Has a wildcard. Remove it.")
                for name in ("AUTH_SITE_URL", "AUTH_SITE_LOGIN_URL")
            ),
            ("AUTH_SITE_LOGIN_URL", "http://localhost:8000/#x", LOGIN_URL),
            ("AUTH_SITE_LOGIN_URL", "https://app.example.com/login", ELSEWHERE),
            ("AUTH_TWILIO_FROM", "x" * 65, "Must be at most 64 characters."),
            *(("AUTH_JWT_AUDIENCE", name, AUDIENCE) for name in ("second_step", A_UUID)),
            ("AUTH_JWT_AUDIENCE", "http://localhost:8000/oauth/userinfo", CLIENT_AUDIENCE),
            ("AUTH_MFA_TOKENS", "none", "Must be second_step or full."),
            *(("AUTH_BIND", address, BIND) for address in ("127.0.0.1:8000", "[::1]:8000", "*")),
            ("DATABASE_URL", "postgresql://auth:topsecret@db.example.com/auth?pgbouncer=true", PGBOUNCER),
        ],
    )
    def test_error_tells_what_to_write(self, load, name, value, problem):
        assert problems(load, **{name: value}) == {name: problem}

    @pytest.mark.parametrize("name", ["AUTH_TOKEN_CLAIMS", "AUTH_ID_CLAIMS"])
    @pytest.mark.parametrize("claim", ["organization", "Organizations"])
    def test_claims_of_organizations_are_reserved_while_these_are_on(self, load, name, claim):
        value = f'{{"{claim}": "app_metadata.{claim}"}}'
        assert load(**{name: value})
        problem = f"AUTH_ORGANIZATIONS has the claim {claim}. Use another name."
        assert problems(load, AUTH_ORGANIZATIONS="admins", **{name: value}) == {name: problem}

    @cases("password", ["p@ss", "p/ss", "p%ss", "p@s/s", "@", "p:1/s", "p/s?s=1"])
    def test_password_of_the_database_that_is_not_encoded_is_reported(self, load, password):
        url = f"postgresql://auth:{password}@db.example.com:5432/auth"
        (problem,) = problems(load, DATABASE_URL=url).values()
        assert "Percent-encode special characters in the password" in problem
        assert password not in problem.replace("%40 for @, %2F for /", "").replace("password@host/", "")

    def test_url_of_a_database_on_another_machine_demands_verified_tls(self, load):
        assert "&sslmode=verify-full" in load(DATABASE_URL="postgresql://u@db/d?port=1").database_url


class TestUnknownNames:
    @cases(
        ("name", "nearest"),
        [
            ("AUTH_SITEURL", "AUTH_SITE_URL"),
            ("AUTH_PASSWORD_MINLENGTH", "AUTH_PASSWORD_MIN_LENGTH"),
            ("AUTH_TRUSTED_PROXY", "AUTH_TRUSTED_PROXIES"),
            ("AUTH_DATABASE_URL", "DATABASE_URL"),
        ],
    )
    def test_warning_names_the_nearest_setting(self, load, name, nearest):
        warnings = load(**{name: "a value that is not printed"}).warnings
        assert warnings == (f"{name} is not a setting. Did you mean {nearest}?",)

    @pytest.mark.parametrize("setting", ["DATABASE_URL", "AUTH_SECRET_KEY"])
    def test_file_of_a_setting_is_not_left_out_in_silence(self, load, setting):
        (warning,) = load(**{f"{setting}_FILE": "/run/secrets/x"}).warnings
        text = f"{setting}_FILE is not a setting, and its file is not read. Set {setting} to the value."
        assert warning == text

    def test_reference_in_dotenv_to_what_is_not_set_is_a_warning(self, load, tmp_path):
        (tmp_path / ".env").write_text(
            "AUTH_BRAND_NAME='Ac${me}'\nme=me\nAUTH_SITE_URL=https://${HOST:-app}.example.com\n"
            "NAME=auth\nAUTH_BASE_URL=https://${NAME}.example.com\nAUTH_MAIL_FROM=${ENVIRON}\n"
        )
        settings = load(ENVIRON="a@example.com")
        assert (settings.brand_name, settings.site_url) == ("Ac", "https://app.example.com")
        assert (settings.base_url, settings.mail_from) == ("https://auth.example.com", "a@example.com")
        assert settings.warnings == (
            "AUTH_BRAND_NAME: Refers to ${me}, which is not set above it, so that this part is left out. Set me, or give"
            " AUTH_BRAND_NAME in the environment, where nothing is replaced.",
        )

    @pytest.mark.parametrize("part", ["hx9f2", "Hx9F2", "a b", "x\nAUTH_X", "\u202eabc"])
    def test_warning_about_a_reference_does_not_quote_a_part_of_a_secret(self, load, tmp_path, part):
        lines = (f'{name}="{"s" * 32}${{{part}}}"\n' for name in ("AUTH_CAPTCHA_SECRET", "MAIL_PASSWORD"))
        (tmp_path / ".env").write_text("".join(lines))
        assert load().warnings == tuple(
            f"{name}: Refers to ${{…}}, which is not set above it, so that this part is left out. Set that variable, or"
            f" give {name} in the environment, where nothing is replaced."
            for name in ("AUTH_CAPTCHA_SECRET", "MAIL_PASSWORD")
        )

    def test_warning_about_a_reference_in_a_secret_names_what_is_meant_as_a_variable(self, load, tmp_path):
        (tmp_path / ".env").write_text("DATABASE_URL=postgresql://auth:${DB_PASSWORD}@localhost/auth\n")
        (warning,) = load().warnings
        assert warning.startswith("DATABASE_URL: Refers to ${DB_PASSWORD}, ")

    @cases(
        "name",
        [
            *("AUTH_SERVICE_HOST", "AUTH_SERVICE_PORT", "AUTH_SERVICE_PORT_HTTP", "AUTH_PORT"),
            *("AUTH_PORT_8000_TCP", "AUTH_PORT_8000_TCP_ADDR", "AUTH_NAME", "AUTH_ENV_PATH"),
        ],
    )
    def test_variable_of_a_container_platform_is_ignored(self, load, name):
        loaded = load(**{name: "tcp://10.0.0.1:8000"})
        assert (loaded.port, loaded.warnings) == (8000, ())


class TestSecrets:
    @cases(
        ("name", "value"),
        [
            *((f"AUTH_{name}", "topsecret") for name in ("SECRET_KEY", "SERVICE_ROLE_KEY", "JWT_SECRET")),
            *(("AUTH_JWT_KEYS", value) for value in ('{"topsecret": 1}', "topsecret")),
            ("DATABASE_URL", "mysql://user:topsecret@host/x"),
        ],
    )
    def test_error_does_not_quote_secrets(self, load, name, value):
        assert "topsecret" not in problems(load, **{name: value})[name]

    def test_repr_does_not_show_secrets(self, load):
        url = "postgresql://user:topsecret@host/x"
        loaded = load(AUTH_SECRET_KEY=SECRET, AUTH_JWT_SECRET=SECRET, DATABASE_URL=url)
        for text in (repr(loaded), str(loaded), f"{loaded}", f"{[loaded]}"):
            assert SECRET not in text
            assert "topsecret" not in text

    @cases("name", ["AUTH_SECRET_KEY", "AUTH_SERVICE_ROLE_KEY", "AUTH_JWT_SECRET"])
    @cases(
        ("value", "problem"),
        [
            ("0123456" * 6, "at least 8 different characters"),
            ("abcdefghijklmnopqrst" * 2 + "abc", "Repeats itself"),
            ("please Change Me before you go live", "Is a placeholder"),
            ("super-secret-jwt-token-with-at-least-32-characters-long", "Is a placeholder"),
        ],
    )
    def test_guessable_secret_is_refused(self, load, name, value, problem):
        lines = problems(load, **{name: value})
        assert problem in lines[name]
        assert value not in lines[name]

    def test_random_secret_is_accepted(self):
        for _ in range(5000):
            for value in (state.new_secret(), secrets.token_hex(16), str(uuid.uuid4())):
                validators.secret(value)


class TestDomains:
    def test_list_or_file_is_read_as_addresses_are(self, load, tmp_path):
        path = tmp_path / "domains.txt"
        path.write_text("# Disposable\nMail.Example\n\nbücher.example  # one more\n")
        expected = {"mail.example", "xn--bcher-kva.example"}
        for text in (str(path), "Mail.Example, bücher.example", "mail.example,mail.example,bücher.example"):
            assert load(AUTH_SIGNUP_BLOCKED_DOMAINS=text).signup_blocked_domains == expected

    def test_allow_list_excludes_anonymous_users(self, load):
        lines = problems(load, AUTH_SIGNUP_DOMAINS="corp.example", AUTH_ANONYMOUS_ENABLED="true")
        assert lines == {"AUTH_ANONYMOUS_ENABLED": "Must be false when AUTH_SIGNUP_DOMAINS is set."}
