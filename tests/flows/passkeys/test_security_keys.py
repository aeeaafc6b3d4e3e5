"""Security keys as second factors: POST /factors with `factor_type: webauthn`, challenges, verifications."""

import pytest

from tests.support.answers import A_SENTENCE, assert_error
from tests.support.authenticator import ES256, Authenticator, Key
from tests.support.cases import cases
from tests.support.passkeys import assertion, register, sign_in, sign_in_response
from tests.support.security_keys import answer, enrol, set_up, verify
from tests.support.server import at_once
from tests.support.users import session_of

FAILED = (400, "webauthn_verification_failed")
UNKNOWN = (400, "webauthn_challenge_not_found")


def test_thief_of_an_older_session_cannot_finish_what_the_owner_began(alice, laptop, database):
    thief = alice.open_session()
    database.run("UPDATE sessions SET created_at = now() - interval '1 day' WHERE id = %(id)s", id=thief.id)
    factor_id = enrol(laptop)
    assert [factor["id"] for factor in thief.get("/user").json["factors"]] == [factor_id]
    assert_error(thief.post(f"/factors/{factor_id}/challenge"), 404, "mfa_factor_not_found")
    # The owner's challenge does not help either.
    body = answer(laptop, factor_id, Authenticator())
    response = thief.post(f"/factors/{factor_id}/verify", json=body)
    assert_error(response, 404, "mfa_factor_not_found")
    assert laptop.post(f"/factors/{factor_id}/verify", json=body).status_code == 200


def test_key_is_enrolled_and_raises_later_sessions(alice, laptop, outbox):
    other = alice.open_session()
    key, factor_id, raised = set_up(laptop)
    assert (raised.id, raised.claims["aal"]) == (laptop.id, "aal2")
    assert [factor["status"] for factor in raised.user["factors"]] == ["verified"]
    assert other.get("/user").status_code == 401
    assert outbox.kinds() == [("factor_added", alice.email)]

    second = alice.open_session()
    assert_error(second.delete("/user"), 403, "insufficient_aal")
    raised_again = session_of(second.client, verify(second, factor_id, key))
    assert [method["method"] for method in raised_again.claims["amr"]] == ["password", "webauthn"]
    assert raised_again.delete(f"/factors/{factor_id}").status_code == 200


def test_site_of_another_relying_party_is_refused(laptop):
    key, factor_id, raised = set_up(laptop)
    body = answer(raised, factor_id, key)
    origins = ["http://localhost:8000", "https://evil.example"]
    for site, details in (
        ({"rpId": "evil.example"}, "webauthn.rpId: must be localhost"),
        ({"rpOrigins": origins}, f"webauthn.rpOrigins: must be among {origins[0]}"),
    ):
        response = raised.post(f"/factors/{factor_id}/challenge", json={"webauthn": site})
        assert_error(response, 400, "validation_failed", details=details)
        members = body | {"webauthn": body["webauthn"] | site}
        response = raised.post(f"/factors/{factor_id}/verify", json=members)
        assert_error(response, 400, "validation_failed", details=details)


@pytest.mark.parametrize(
    "changes",
    [{"is_present": False}, {"key": Key(ES256)}, {"user_handle": bytes(16)}, {"counter": 0}],
    ids=lambda changes: next(iter(changes)),
)
def test_assertion_with_a_foreign_part_is_refused(alice, laptop, changes):
    key, factor_id, _ = set_up(laptop)
    second = alice.open_session()
    session_of(second.client, verify(second, factor_id, key))
    third = alice.open_session()
    assert_error(verify(third, factor_id, key, **changes), *FAILED, details=A_SENTENCE)
    assert third.refreshed().claims["aal"] == "aal1"


def test_one_of_many_concurrent_requests_with_one_challenge_succeeds(server, alice, laptop):
    key, factor_id, _ = set_up(laptop)
    session = alice.open_session().on(server)
    body = answer(session, factor_id, key)
    answers = at_once(20, lambda _: session.post(f"/factors/{factor_id}/verify", json=body))
    assert sorted(answer.status_code for answer in answers) == [200, *[400] * 19]


def test_keys_and_passkeys_do_not_stand_in_for_each_other(client, alice, laptop):
    key, factor_id, raised = set_up(laptop)
    other = Authenticator(is_verified=False)
    assert verify(raised, enrol(raised, "Other"), other).status_code == 200
    response = sign_in_response(client, key, is_verified=True)
    assert_error(response, *FAILED, details=A_SENTENCE)
    passkey, _ = register(raised)
    session = alice.open_session()
    for authenticator in (passkey, other):
        response = verify(session, factor_id, authenticator, passkey=authenticator.passkeys[0])
        assert_error(response, *FAILED, details=A_SENTENCE)
    body = assertion(client, passkey)
    foreign = {"type": "request", "credential_response": body["credential"]}
    members = {"challenge_id": body["challenge_id"], "webauthn": foreign}
    assert_error(session.post(f"/factors/{factor_id}/verify", json=members), *UNKNOWN)
    assert sign_in(client, passkey).claims["aal"] == "aal2"


@cases(
    "body",
    [
        {},
        {"code": "123456", "webauthn": {"type": "create", "credential_response": {}}},
        {"webauthn": {"type": "other", "credential_response": {}}},
        {"webauthn": {"type": "create"}},
        {"webauthn": {"type": "request", "credential_response": {}}},
    ],
)
def test_malformed_body_is_refused(laptop, body):
    factor_id = enrol(laptop)
    response = laptop.post(f"/factors/{factor_id}/verify", json={"challenge_id": factor_id} | body)
    assert_error(response, 400, "validation_failed", details=A_SENTENCE)
