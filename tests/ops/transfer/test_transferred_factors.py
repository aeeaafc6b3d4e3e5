"""Second factors and passkeys in the files of `latchkey users export` and `users import`."""

import json
import uuid

import pytest

from tests.support import factors
from tests.support.answers import assert_error
from tests.support.api_keys import make_key, use
from tests.support.authenticator import ES256, ES384, Authenticator, Key, Passkey, encode
from tests.support.commands import run_command
from tests.support.passkeys import register, sign_in, sign_in_response

SECRET = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"
ID = "11111111-2222-4333-8444-555555555555"
APP = {"factor_type": "totp", "secret": SECRET}
KEY = {
    "factor_type": "webauthn",
    "rp_id": "localhost",
    "credential_id": encode(bytes(32)),
    "public_key": encode(Key(ES256).cose),
}
CONTENTS = """
SELECT to_jsonb(f) - '{secret,updated_at}'::text[] FROM factors AS f WHERE verified_at IS NOT NULL ORDER BY id
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "users.jsonl"


@pytest.fixture
def export(app, path, database):
    """Return a function that writes all users to the file, and deletes them."""

    def run():
        result = run_command(app, "users", "export", str(path), "--plaintext")
        assert result.exit_code == 0, result.output
        database.empty()

    return run


@pytest.fixture
def import_file(app, path):
    options = ("users", "import", str(path), "--trust-addresses", "--json")
    return lambda *more_options: run_command(app, *options, *more_options)


@pytest.fixture
def import_user(import_file, path):
    """Return a function that imports a user with factors, and returns the outcome."""

    def run(*factors, options=(), **members):
        row = {"id": ID, "email": "dave@example.com", "factors": list(factors)} | members
        path.write_text(f"{json.dumps(row)}\n")
        return json.loads(import_file(*options).output.splitlines()[0])

    return run


def test_factors_and_passkeys_work_after_export_and_import(export, import_file, client, alice, database):
    app, raised = factors.set_up(alice.open_session(), "Phone")
    factors.enrol(raised, "Unfinished")
    authenticator, _passkey = register(raised)
    sign_in(client, authenticator)
    raised.post("/factors/recovery-codes", json={})
    database.run("UPDATE factors SET last_step = last_step + 1000")
    before = database.all(CONTENTS)
    sealed = database.value("SELECT secret FROM factors WHERE verified_at IS NOT NULL AND secret IS NOT NULL")
    export()

    assert import_file().exit_code == 0

    assert database.all(CONTENTS) == before
    assert bytes(database.value("SELECT secret FROM factors WHERE secret IS NOT NULL")) != bytes(sealed)
    session = alice.sign_in()
    assert [factor["id"] for factor in session.user["factors"]] == [app.id]
    assert_error(factors.verify(session, app), 422, "mfa_verification_failed")
    database.run("UPDATE factors SET last_step = last_step - 1000")
    assert factors.raised(session, app).claims["aal"] == "aal2"
    copied = sign_in_response(client, authenticator, counter=1)
    assert (copied.status_code, copied.json["details"][:35]) == (400, "credential: its counter went down, ")
    assert sign_in(client, authenticator).user["id"] == alice.id
    assert_error(session.get("/factors/recovery-codes"), 404, "mfa_factor_not_found")

    before = database.everything()
    outcome = import_file()
    assert (outcome.exit_code, json.loads(outcome.output.splitlines()[-1])["exists"]) == (0, 1)
    assert database.everything() == before


def test_user_who_has_only_a_passkey_signs_in_again(export, import_file, client, alice, database):
    authenticator, _passkey = register(alice.open_session())
    database.run("DELETE FROM identities")
    database.run("UPDATE users SET email = NULL, email_confirmed_at = NULL, email_proved = false")
    export()
    assert sign_in_response(client, authenticator).status_code == 400
    assert import_file().exit_code == 0
    assert sign_in(client, authenticator).user["id"] == alice.id


def test_secret_that_cannot_be_opened_stops_the_export(app, alice, database, path):
    factor, _raised = factors.set_up(alice.open_session())
    database.run("UPDATE factors SET secret = '\\x00112233445566778899aabbccddeeff'")
    result = run_command(app, "users", "export", str(path), "--plaintext")
    problem = f"Nothing was exported: the secret of the factor {factor.id} of the user {alice.id}"
    assert (result.exit_code, problem in result.output) == (1, True)
    assert list(path.parent.iterdir()) == []


@pytest.mark.parametrize(
    ("factor", "reason"),
    [
        ({"factor_type": "sms"}, "factors.0.factor_type: must be one of totp, webauthn, passkey"),
        ({"factor_type": "totp"}, "factors.0.secret: is required"),
        (APP | {"secret": "JBSWY3DPEHPK3PXP"}, "factors.0.secret: must be base32 of at least 112 bits"),
        (APP | {"secret": f"{SECRET}1"}, "factors.0.secret: must be base32"),
        (APP | {"rp_id": "localhost"}, "factors.0.rp_id: must not be given for a totp"),
        (KEY | {"secret": SECRET}, "factors.0.secret: must not be given for a webauthn"),
        (KEY | {"rp_id": "example.org"}, "factors.0.rp_id: is example.org, but credentials only work under localhost"),
        (KEY | {"credential_id": None}, "factors.0.credential_id: is required"),
        (KEY | {"credential_id": "a+b="}, "factors.0.credential_id: must be base64url"),
        (KEY | {"credential_id": encode(bytes(1024))}, "factors.0.credential_id: must be at most 1023 bytes"),
        (KEY | {"public_key": "AAAA"}, "factors.0.public_key: it is malformed"),
        (KEY | {"public_key": encode(Key(ES384).cose)}, "factors.0.public_key: the public key is not one of"),
        (KEY | {"sign_count": -1}, "factors.0.sign_count: must be a whole number"),
        (KEY | {"counter": 1}, "factors.0.counter: is not a known field"),
    ],
)  # fmt: skip
def test_wrong_factor_is_reported_with_its_line(import_user, database, factor, reason):
    outcome = import_user(factor)
    assert (outcome["place"], outcome["status"]) == ("line 1", "refused")
    assert reason in outcome["reason"]
    assert database.count("users") == 0


def test_credentials_need_the_id_of_the_user(import_user):
    assert "id: is required" in import_user(KEY, id=None)["reason"]


@pytest.mark.parametrize("factor", [APP | {"friendly_name": "Phone"}, APP | {"id": ID}, KEY])
def test_two_factors_of_one_name_id_or_credential_are_refused(import_user, database, factor):
    outcome = import_user(factor, factor)
    assert outcome["reason"] == "factors: two have the same id, name or credential"
    assert database.count("users") == 0


def test_credential_of_another_user_is_not_taken_over(import_user, client, alice, database):
    authenticator, _passkey = register(alice.open_session())
    before = database.everything()
    own = KEY | {"factor_type": "passkey", "credential_id": encode(authenticator.passkeys[0].id)}
    assert import_user(own)["status"] == "exists"
    assert database.everything() == before
    assert sign_in(client, authenticator).user["id"] == alice.id


def test_option_without_factors_leaves_them_out(import_user, database):
    outcome = import_user(APP, KEY | {"rp_id": "example.org"}, options=["--without-factors"])
    assert (outcome["status"], database.count("factors")) == ("created", 0)


def test_minimal_members_are_enough_and_unknown_transports_are_dropped(import_user, client, database):
    key = Key(ES256)
    passkey = Passkey("localhost", uuid.UUID(ID).bytes, key)
    own = {"credential_id": encode(passkey.id), "public_key": encode(key.cose)}
    factor = {**KEY, **own, "factor_type": "passkey", "transports": ["usb", "telepathy"]}
    assert import_user(factor)["status"] == "created"
    assert database.value("SELECT transports FROM factors") == ["usb"]
    assert sign_in(client, Authenticator(passkeys=[passkey])).user["id"] == ID


def test_api_keys_move_only_to_a_deployment_with_their_secret(make_app, alice, path, database):
    settings = {"AUTH_API_KEYS": "true"}
    app, stranger = (
        make_app(**settings),
        make_app(**settings, AUTH_SECRET_KEY="another-secret-of-another-deployment"),
    )
    id, key = make_key(alice.open_session(app.test_client()), scopes=["read"], expires_in=3600)
    database.run("UPDATE api_keys SET aal = 'aal2'")
    columns = "SELECT to_jsonb(k) - 'counted_until' FROM api_keys AS k"
    before = database.value(columns)
    assert run_command(app, "users", "export", str(path), "--plaintext").exit_code == 0
    for target, expected in ((stranger, []), (app, [(before,)])):
        database.empty()
        assert run_command(target, "users", "import", str(path), "--trust-addresses").exit_code == 0
        assert database.all(columns) == expected
    assert use(app.test_client(), key).status_code == 200
    # An import changes no existing user, and no key of one.
    path.write_text(path.read_text().replace(alice.id, ID).replace(alice.email, "dave@example.com"))
    assert run_command(app, "users", "import", str(path), "--trust-addresses").exit_code == 0
    assert database.value("SELECT user_id FROM api_keys WHERE id = %(id)s", id=id) == alice.id


@pytest.mark.parametrize(
    ("member", "level"), [("", "aal1"), (', "aal": "aal1"', "aal1"), (', "aal": "aal3"', None)]
)
def test_level_of_an_api_key_is_imported_and_the_lowest_if_the_export_has_none(
    make_app, alice, path, database, member, level
):
    app = make_app(AUTH_API_KEYS="true")
    make_key(alice.open_session(app.test_client()))
    database.run("UPDATE api_keys SET aal = 'aal2'")
    run_command(app, "users", "export", str(path), "--plaintext")
    database.empty()
    exported = path.read_text()
    assert exported.count(', "aal" : "aal2"') == 1
    path.write_text(exported.replace(', "aal" : "aal2"', member))
    run_command(app, "users", "import", str(path), "--trust-addresses")
    assert [row.aal for row in database.all("SELECT aal FROM api_keys")] == [level][: level is not None]
