"""Nodes with other keys than the rest of the deployment do not start."""

import dataclasses

import pytest

from auth.core.keys import fingerprints
from auth.core.keys.fingerprints import OtherKeys
from auth.core.tokens import signing_keys
from tests.support.environment import secret
from tests.support.server import at_once

OLD, NEW, OTHER = secret("old"), secret("new"), secret("other")
JWK_SETS = [signing_keys.new_jwk_set() for _ in range(2)]
JOINED_JWK_SET = '{"keys": [' + ", ".join(jwks[len('{"keys": [') : -len("]}")] for jwks in JWK_SETS) + "]}"


@pytest.fixture
def start(parts, database):
    """Return a function that starts a node with changed settings, and returns the settings that do not fit."""

    def start(**changes):
        try:
            fingerprints.keep(parts.db, dataclasses.replace(parts.settings, key_files={}, **changes))
        except OtherKeys as error:
            return [line.split(":")[0] for line in str(error).splitlines()]
        return []

    return start


class TestFit:
    @pytest.mark.parametrize(
        ("settings", "changes"),
        [
            (["AUTH_SECRET_KEY"], {"secret_key": (OTHER,)}),
            (["AUTH_SERVICE_ROLE_KEY"], {"service_role_key": (OTHER, NEW)}),
            (["AUTH_JWT_KEYS"], {"jwt_keys": JWK_SETS[1]}),
            (["AUTH_JWT_KEYS"], {"jwt_keys": "", "jwt_secret": OTHER}),
            (["AUTH_SECRET_KEY", "AUTH_JWT_KEYS"], {"secret_key": (OTHER,), "jwt_keys": JWK_SETS[1]}),
        ],
    )
    def test_node_with_another_key_does_not_start_and_names_the_setting(self, start, settings, changes):
        assert start() == start() == []
        assert start(**changes) == settings
        assert start() == []

    @pytest.mark.parametrize(
        ("name", "old", "joined", "new"),
        [
            ("secret_key", (OLD,), (NEW, OLD), (NEW,)),
            ("service_role_key", (OLD,), (NEW, OLD), (NEW,)),
            ("jwt_keys", JWK_SETS[0], JOINED_JWK_SET, JWK_SETS[1]),
        ],
    )
    def test_keys_rotate_node_by_node(self, start, name, old, joined, new):
        # Two nodes; each step restarts one of them, and a crash restarts the other one.
        for value in (old, old, joined, old, joined, joined, new, joined, new, new):
            assert start(**{name: value}) == []
        assert start(**{name: old}) == [f"AUTH_{name.upper()}"]

    def test_signing_moves_from_a_shared_secret_to_keys(self, start):
        for changes in (
            {"jwt_secret": OLD, "jwt_keys": ""},
            {"jwt_secret": OLD, "jwt_keys": JWK_SETS[0]},
            {"jwt_secret": None, "jwt_keys": JWK_SETS[0]},
        ):
            assert start(**changes) == []

    def test_key_under_another_id_does_not_fit(self, start):
        start(jwt_keys=JWK_SETS[0])
        renamed = JWK_SETS[0].replace('"kid": "', '"kid": "other-')
        assert start(jwt_keys=renamed) == ["AUTH_JWT_KEYS"]

    def test_one_of_several_nodes_with_different_keys_starts_on_an_empty_database(self, start):
        results = at_once(5, lambda number: start(secret_key=(secret(str(number)),)))
        assert sorted(results) == [[], *[["AUTH_SECRET_KEY"]] * 4]

    def test_fingerprint_is_not_the_key(self, start, database, parts):
        start()
        stored = str(database.everything("key_fingerprints"))
        for key in (*parts.settings.secret_key, *parts.settings.service_role_key):
            assert key not in stored
            assert key.encode().hex() not in stored
