"""Refresh tokens: their contents and keys."""

import base64
import string

import pytest

from auth.tokens.refresh_tokens import InvalidRefreshToken, RefreshToken, RefreshTokens
from tests.conftest import secret
from tests.support.answers import A_REFRESH_TOKEN, assert_error
from tests.support.cast import Session, refresh

ALPHABET = string.ascii_letters + string.digits + "-_"
SESSION_ID = "0190a5b4-6d7e-7c3a-9f00-0123456789ab"
OLD, NEW = secret("old"), secret("new")


@pytest.fixture
def tokens():
    return RefreshTokens((OLD,))


def test_token_contains_its_session_and_counter(tokens):
    token = tokens.make(SESSION_ID, 7)
    assert token == A_REFRESH_TOKEN
    assert tokens.read(token) == RefreshToken(SESSION_ID, 7)


def test_each_counter_of_each_session_has_its_own_token(tokens):
    made = [
        tokens.make(SESSION_ID, 0),
        tokens.make(SESSION_ID, 1),
        tokens.make(SESSION_ID.replace("9f00", "9f01"), 0),
    ]
    assert len(set(made)) == 3
    assert tokens.make(SESSION_ID, 1) == made[1]


def test_other_spellings_of_a_token_are_refused(tokens):
    token = tokens.make(SESSION_ID, 7)
    changed = [
        token[:place] + letter + token[place + 1 :]
        for place in range(len(token))
        for letter in ALPHABET
        if letter != token[place]
    ]
    others = [
        token + "=",
        token + " ",
        " " + token,
        token + "\n",
        token[:-1],
        token + "A",
        "ä" + token[1:],
        token.swapcase(),
    ]
    for spelling in (*changed, *others):
        with pytest.raises(InvalidRefreshToken):
            tokens.read(spelling)


def test_counter_beyond_a_bigint_is_refused(tokens):
    with pytest.raises(InvalidRefreshToken):
        tokens.read(tokens.make(SESSION_ID, 2**63))


def test_token_signed_with_another_secret_is_refused(tokens):
    with pytest.raises(InvalidRefreshToken):
        RefreshTokens((NEW,)).read(tokens.make(SESSION_ID, 7))


def test_database_stores_no_token(alice, database):
    session = alice.open_session().refreshed()
    everything = str(database.everything())
    raw = base64.urlsafe_b64decode(session.refresh_token)
    for value in (
        session.refresh_token,
        session.access_token,
        raw[24:].hex(),
        session.access_token.split(".")[2],
    ):
        assert value not in everything


class TestRotationOfTheSecretKey:
    """AUTH_SECRET_KEY is "new,old" during the rotation."""

    def test_old_tokens_are_accepted_and_new_ones_made_with_the_new_key(self, make_app, alice):
        before = alice.sign_in(client=make_app(AUTH_SECRET_KEY=OLD).test_client())
        during = make_app(AUTH_SECRET_KEY=f"{NEW},{OLD}").test_client()
        after = make_app(AUTH_SECRET_KEY=NEW).test_client()
        renewed = Session(during, before.access_token, before.refresh_token, {}).refreshed()
        assert refresh(after, renewed.refresh_token).status_code == 200

    def test_old_tokens_are_refused_when_the_old_key_is_removed(self, make_app, alice):
        before = alice.sign_in(client=make_app(AUTH_SECRET_KEY=OLD).test_client())
        response = refresh(make_app(AUTH_SECRET_KEY=NEW).test_client(), before.refresh_token)
        assert_error(
            response, 400, "refresh_token_not_found", "Invalid Refresh Token: Refresh Token Not Found"
        )

    def test_access_tokens_do_not_depend_on_the_secret_key(self, make_app, alice):
        before = alice.sign_in(client=make_app(AUTH_SECRET_KEY=OLD).test_client())
        assert before.on(make_app(AUTH_SECRET_KEY=NEW).test_client()).get("/user").status_code == 200
