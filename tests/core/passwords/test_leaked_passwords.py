"""Leaked passwords: the file, the range API, and what they refuse or say."""

import dataclasses
import hashlib
import json
import struct

import pytest

from auth.core.passwords import leaked_file, leaked_ranges
from auth.core.passwords.leaked_file import LeakedFile
from auth.core.passwords.leaked_ranges import RangeApi, Unfetched
from auth.core.settings import SettingsError
from auth.ops.processes.start_checks import check_files
from auth.web.context import EXTENSION
from tests.support.answers import assert_error
from tests.support.cases import cases
from tests.support.checked_rows import statements_run
from tests.support.commands import run_command, run_with_settings
from tests.support.range_api import RangeStub, sha1
from tests.support.users import NEW_PASSWORD, PASSWORD, WRONG_PASSWORD, session_of, sign_in

LEAKED = "Horse-Battery-7"
WARNING = "This password is known from data breaches. Choose another one."
REQUIREMENT = "not be one that is known from data breaches"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "leaked-passwords"


@pytest.fixture
def guarded(make_app, path):
    """An application with a file in which `LEAKED` and the password of the users are."""
    leaked_file.write(path, map(leaked_file.number_of, map(sha1, (LEAKED, PASSWORD))))
    return make_app(AUTH_PASSWORD_LEAKED_FILE=str(path))


@pytest.fixture
def ranges():
    with RangeStub({LEAKED: 3, PASSWORD: 5}) as stub:
        yield stub


@pytest.fixture
def online(make_app, ranges):
    return make_app(AUTH_PASSWORD_LEAKED=ranges.mirror)


def assert_leaked(response, status=422):
    details, weak = f"password: must {REQUIREMENT}", {"reasons": ["pwned"]}
    message = f"Password should {REQUIREMENT}."
    assert_error(response, status, "weak_password", message, details, weak_password=weak)


def build(path, text, *options):
    environment = {"AUTH_PASSWORD_LEAKED_FILE": str(path), "AUTH_STATE_DIR": str(path.parent)}
    return run_with_settings(environment, "passwords", "build", "-", *options, input=text)


class TestFile:
    def test_list_in_any_order_becomes_a_file_that_has_its_passwords_and_no_others(self, path):
        passwords = [f"password {number}" for number in range(1000)]
        lines = [f"{sha1(password)}:{number + 1}" for number, password in enumerate(passwords)]
        # Twice, with other ends of lines and other letters.
        text = "\n".join(lines) + "\n" + "\r\n".join(lines).lower()
        result = build(path, text, "--min-count", "501", "--json")
        assert (result.exit_code, json.loads(result.stdout)) == (0, {"path": str(path), "count": 500})
        leaked = LeakedFile(path)
        leaked.check()
        assert [leaked.contains(password) for password in passwords] == [False] * 500 + [True] * 500
        assert not any(leaked.contains(f"another {number}") for number in range(1000))

    def test_file_has_the_documented_form(self, path):
        leaked_file.write(path, map(leaked_file.number_of, map(sha1, ("a", "b", "c"))))
        digests = sorted(
            hashlib.sha1(letter, usedforsecurity=False).digest()[:8] for letter in (b"a", b"b", b"c")
        )
        body = b"".join(digest[::-1] for digest in digests)
        assert path.read_bytes() == struct.pack("<8sQ", b"latchkey", 3) + hashlib.sha256(body).digest() + body
        assert path.stat().st_mode & 0o777 == 0o644

    @pytest.mark.parametrize(
        "line", ["", "x" * 40 + ":1", f"{sha1('a')}", f"{sha1('a')}:x", f"{sha1('a')[1:]}:1"]
    )
    def test_another_list_is_refused_by_line_and_keeps_the_file(self, path, line):
        path.write_bytes(b"before")
        result = build(path, f"{sha1('a')}:1\n{line}\n")
        assert (result.exit_code, path.read_bytes()) == (2, b"before")
        assert "Line 2 must be SHA1:COUNT" in result.stderr
        assert [file.name for file in path.parent.iterdir()] == [path.name]

    @cases(
        ("change", "problem"),
        [
            (lambda content: content[:-1], "has 71 bytes, not those of 3 hashes"),
            (lambda content: content + bytes(8), "has 80 bytes, not those of 3 hashes"),
            (lambda content: content[:20], "is cut off"),
            (lambda content: b"", "is cut off"),
            (lambda content: b"LATCHKEY" + content[8:], "is no file of leaked passwords"),
            (
                lambda content: content[:-1] + bytes([content[-1] ^ 1]),
                "is damaged: its checksum is another one",
            ),
            (lambda content: content[:20] + b"x" + content[21:], "is damaged: its checksum is another one"),
            (lambda content: _signed(content[56:64] + content[48:56] + content[64:]), "is not sorted"),
            (lambda content: _signed(content[48:56] * 2 + content[64:]), "is not sorted"),
        ],
    )
    def test_file_that_cannot_be_trusted_stops_the_start_and_is_named(self, app, path, change, problem):
        leaked_file.write(path, [1 << 60, 2 << 60, 3 << 60])
        path.write_bytes(change(path.read_bytes()))
        settings = _with_file(app, path)
        with pytest.raises(
            SettingsError, match=f"^AUTH_PASSWORD_LEAKED_FILE: {path} {problem}. Make it again"
        ):
            check_files(settings)


def _signed(body):
    return struct.pack("<8sQ", b"latchkey", len(body) // 8) + hashlib.sha256(body).digest() + body


def _with_file(app, path):
    settings = app.extensions[EXTENSION].settings
    return dataclasses.replace(settings, password_leaked="file", password_leaked_file=path)


@pytest.mark.parametrize("source", ["guarded", "online"])
def test_leaked_password_is_refused_wherever_one_is_chosen(request, source, alice, service_role, database):
    app = request.getfixturevalue(source)
    client, body = app.test_client(), {"email": "dave@example.com", "password": LEAKED}
    assert_leaked(client.post("/signup", json=body))
    assert_leaked(alice.open_session(client).put("/user", json={"password": LEAKED}))
    assert_leaked(client.post("/admin/users", json=body, headers=service_role), 400)
    path = f"/admin/users/{alice.id}"
    assert_leaked(client.put(path, json={"password": LEAKED}, headers=service_role), 400)
    link = {"type": "signup", **body}
    assert_leaked(client.post("/admin/generate_link", json=link, headers=service_role), 400)
    result = run_command(app, "create-admin", "carol@example.com", input=LEAKED)
    assert (result.exit_code, f"The password must {REQUIREMENT}." in result.stderr) == (1, True)
    assert database.count("users") == 1
    assert client.post("/signup", json=body | {"password": NEW_PASSWORD}).status_code == 201


class TestSigningIn:
    def test_sign_in_with_a_leaked_password_succeeds_and_says_so(self, guarded, alice, carol):
        client = guarded.test_client()
        answers = [sign_in(client, alice.email)]
        body = {"email": carol.email, "password": PASSWORD}
        answers.append(client.post("/login-admin", json=body))
        assert [answer.status_code for answer in answers] == [200, 200]
        weak = {"message": WARNING, "reasons": ["pwned"]}
        assert [answer.json["weak_password"] for answer in answers] == [weak, weak]
        refreshed = session_of(client, answers[0]).refresh()
        assert (refreshed.status_code, "weak_password" in refreshed.json) == (200, False)

    def test_refused_sign_in_tells_nothing_about_leaks(self, guarded, make_app, alice, database):
        """The password is leaked and wrong, or right and its verdict must not be revealed."""
        settings = {
            "AUTH_PASSWORD_LEAKED_FILE": guarded.extensions[
                EXTENSION
            ].settings.password_leaked_file.as_posix(),
            "AUTH_RATE_LIMITS_ENABLED": "true",
            "AUTH_RATE_LIMIT_LOGIN_FAILURES": "3 per minute",
        }
        client, answers, costs = make_app(**settings).test_client(), [], []
        for password in (LEAKED, WRONG_PASSWORD, LEAKED, PASSWORD, WRONG_PASSWORD):
            before = statements_run()
            answers.append(sign_in(client, alice.email, password))
            costs.append(statements_run() - before)
        assert [answer.status_code for answer in answers] == [401, 401, 401, 429, 429]
        assert [answer.json.keys() & {"weak_password"} for answer in answers] == [set()] * 5
        assert (costs[0], costs[3]) == (costs[1], costs[4])
        assert database.count("users", "password_leaked_at IS NOT NULL") == 0

    def test_network_is_not_asked(self, online, ranges, alice):
        answer = sign_in(online.test_client(), alice.email)
        assert (answer.status_code, "weak_password" in answer.json, ranges.requests) == (200, False, [])


class TestRanges:
    def test_api_learns_five_digits_and_is_asked_for_padding(self, online, ranges):
        body = {"email": "dave@example.com", "password": LEAKED}
        assert_leaked(online.test_client().post("/signup", json=body))
        ((prefix, headers),) = ranges.requests
        assert (prefix, headers["Add-Padding"]) == (sha1(LEAKED)[:5], "true")

    @cases(
        "failure",
        [
            {"behaviour": "hang"}, {"behaviour": "drip"}, {"behaviour": "drip body"}, {"behaviour": "close"},
            {"status": 503}, {"status": 302}, {"body": "<html>"}, {"body": "\n"},
        ],
    )  # fmt: skip
    def test_password_is_accepted_and_counted_if_no_answer_comes(self, parts, failure, capfd, monkeypatch):
        monkeypatch.setattr(leaked_ranges, "_TIMEOUT", 0.3)
        with RangeStub({LEAKED: 3}) as stub:
            vars(stub).update(failure)
            api = RangeApi(dataclasses.replace(parts.settings, password_leaked=stub.mirror))
            assert (api.contains(LEAKED), api.failures) == (False, 1)

    def test_range_that_is_not_given_ends_the_fetch_and_keeps_the_file(
        self, parts, ranges, path, monkeypatch
    ):
        monkeypatch.setattr("auth.core.passwords.leaked_ranges.time.sleep", lambda _seconds: None)
        path.write_bytes(b"before")
        ranges.status = 503
        api = RangeApi(dataclasses.replace(parts.settings, password_leaked=ranges.mirror))
        with pytest.raises(Unfetched, match=r"/range/00000: it answered 503$"):
            leaked_file.write(path, api.fetch(range(3), 1))
        assert path.read_bytes() == b"before"
        assert len(ranges.requests) == 4
