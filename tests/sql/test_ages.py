"""Times that stand in SQL and in Python."""

from auth.core import promises


def test_age_of_a_fresh_proof_is_the_same_in_sql_and_in_python(database):
    assert database.value("SELECT extract(epoch FROM fresh_age())") == promises.PROOF_AGE


def test_age_of_what_is_recent_is_the_lifetime_of_the_links_of_notices(database):
    assert database.value("SELECT extract(epoch FROM recent_age())") == promises.UNDO_LIFETIME
