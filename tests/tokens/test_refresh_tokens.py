"""Refresh tokens: what they are made of, and the keys behind them."""

import base64
import string

import pytest

from auth.tokens.refresh_tokens import InvalidRefreshToken, RefreshToken, RefreshTokens
from tests.support.answers import A_REFRESH_TOKEN, assert_error
from tests.support.cast import Session, refresh

ALPHABET = string.ascii_letters + string.digits + "-_"
SESSION_ID = "0190a5b4-6d7e-7c3a-9f00-0123456789ab"
OLD, NEW = "old-root-secret-" * 2, "new-root-secret-" * 2


@pytest.fixture
def tokens():
    return RefreshTokens((OLD,))


def test_a_token_says_the_session_and_its_counter(tokens):
    token = tokens.make(SESSION_ID, 7)
    assert token == A_REFRESH_TOKEN
    assert tokens.read(token) == RefreshToken(SESSION_ID, 7)


def test_each_counter_of_each_session_has_one_token(tokens):
    made = [
        tokens.make(SESSION_ID, 0),
        tokens.make(SESSION_ID, 1),
        tokens.make(SESSION_ID.replace("9f00", "9f01"), 0),
    ]
    assert len(set(made)) == 3
    assert tokens.make(SESSION_ID, 1) == made[1]


def test_no_other_spelling_of_a_token_is_taken(tokens):
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


def test_a_counter_that_the_database_could_not_hold_is_none_of_ours(tokens):
    with pytest.raises(InvalidRefreshToken):
        tokens.read(tokens.make(SESSION_ID, 2**63))


def test_a_token_of_another_secret_is_none_of_ours(tokens):
    with pytest.raises(InvalidRefreshToken):
        RefreshTokens((NEW,)).read(tokens.make(SESSION_ID, 7))


def test_the_database_holds_no_token(alice, database):
    session = alice.sign_in().refreshed()
    everything = str(database.everything())
    raw = base64.urlsafe_b64decode(session.refresh_token)
    for secret in (
        session.refresh_token,
        session.access_token,
        raw[24:].hex(),
        session.access_token.split(".")[2],
    ):
        assert secret not in everything


class TestRotationOfTheSecret:
    """AUTH_SECRET_KEY=new,old while it is being changed."""

    def test_old_tokens_are_taken_and_new_ones_made_with_the_new_key(self, make_app, alice):
        before = alice.sign_in(client=make_app(AUTH_SECRET_KEY=OLD).test_client())
        during = make_app(AUTH_SECRET_KEY=f"{NEW},{OLD}").test_client()
        after = make_app(AUTH_SECRET_KEY=NEW).test_client()
        renewed = Session(during, before.access_token, before.refresh_token, {}).refreshed()
        assert refresh(after, renewed.refresh_token).status_code == 200

    def test_when_it_is_over_old_tokens_are_refused(self, make_app, alice):
        before = alice.sign_in(client=make_app(AUTH_SECRET_KEY=OLD).test_client())
        response = refresh(make_app(AUTH_SECRET_KEY=NEW).test_client(), before.refresh_token)
        assert_error(
            response, 400, "refresh_token_not_found", "Invalid Refresh Token: it is not one of this service"
        )

    def test_access_tokens_do_not_depend_on_it(self, make_app, alice):
        before = alice.sign_in(client=make_app(AUTH_SECRET_KEY=OLD).test_client())
        assert before.on(make_app(AUTH_SECRET_KEY=NEW).test_client()).get("/user").status_code == 200
