"""Fixtures of the tests of passkeys and security keys."""

import pytest


@pytest.fixture
def laptop(alice):
    """A session of Alice by her password, on the device that gets the credential."""
    return alice.open_session()
