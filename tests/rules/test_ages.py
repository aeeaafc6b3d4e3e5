"""Times that stand in several places."""

from auth.core import constants
from auth.rules import policy


def test_age_of_what_is_recent_is_the_lifetime_of_the_links_of_notices():
    assert policy.RECENT_AGE.total_seconds() == constants.UNDO_LIFETIME
