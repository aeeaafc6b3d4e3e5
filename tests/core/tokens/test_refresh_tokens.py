"""Refresh tokens: their contents and keys."""

import base64
import string

import pytest

from auth.core.tokens.refresh_tokens import InvalidRefreshToken, RefreshToken, RefreshTokens
from tests.support.answers import A_REFRESH_TOKEN, assert_error
from tests.support.environment import secret

ALPHABET = string.ascii_letters + string.digits + "-_"
SESSION_ID = "0190a5b4-6d7e-7c3a-9f00-0123456789ab"
OLD, NEW = secret("old"), secret("new")


@pytest.fixture
def tokens():
    return RefreshTokens((OLD,))


def test_token_contains_its_session_and_counter(tokens):
    for session, counter in ((SESSION_ID, 0), (SESSION_ID, 7), (SESSION_ID.replace("9f00", "9f01"), 7)):
        token = tokens.make(session, counter)
        assert token == A_REFRESH_TOKEN == tokens.make(session, counter)
        assert tokens.read(token) == RefreshToken(session, counter)


def test_other_spellings_of_a_token_are_refused(tokens):
    token = tokens.make(SESSION_ID, 7)
    places = [(token[:place], token[place + 1 :]) for place in range(len(token))]
    neighbours = {before + letter + after for before, after in places for letter in ALPHABET} - {token}
    others = [*(token + end for end in ("=", " ", "\n", "A")), " " + token, token[:-1], "ä" + token[1:]]
    for spelling in (*neighbours, *others, token.swapcase()):
        with pytest.raises(InvalidRefreshToken):
            tokens.read(spelling)


def test_token_of_another_secret_or_with_a_counter_beyond_a_bigint_is_refused(tokens):
    for token in (tokens.make(SESSION_ID, 2**63), RefreshTokens((NEW,)).make(SESSION_ID, 7)):
        with pytest.raises(InvalidRefreshToken):
            tokens.read(token)


def test_database_stores_no_token(alice, database):
    session = alice.open_session().refreshed()
    everything = str(database.everything())
    raw = base64.urlsafe_b64decode(session.refresh_token)
    signature = session.access_token.split(".")[2]
    for value in (session.refresh_token, session.access_token, raw[24:].hex(), signature):
        assert value not in everything


def test_secret_key_is_rotated_without_ending_sessions(make_app, alice):
    """AUTH_SECRET_KEY is "new,old" during the rotation."""
    before = alice.sign_in(client=make_app(AUTH_SECRET_KEY=OLD).test_client())
    during, after = (make_app(AUTH_SECRET_KEY=keys).test_client() for keys in (f"{NEW},{OLD}", NEW))
    # Access tokens do not depend on it.
    assert before.on(after).get("/user").status_code == 200
    response = before.on(after).refresh()
    assert_error(response, 400, "refresh_token_not_found", "Invalid Refresh Token: Refresh Token Not Found")
    assert before.on(during).refreshed().on(after).refresh().status_code == 200
