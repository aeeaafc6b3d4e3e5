"""Columns that must not change while a token hook is asked: auth/rules/deciding.py."""

import re

from sql import shipped

# Columns that decide nothing about a token: who may do something is in none of them.
OTHERS = {
    "sessions": """auth_time by_key code_given_at counted_until counter created_at echoes end_reason factor_proved_at
        first_passkey_at grant_id ip method opened_by organization_id reauthenticated_at refreshed_at refreshes
        resource scopes successor_counter used_counter user_agent""",
    "users": """admin_since confirmation_sent_at email_by_key email_change_sent_at email_proved first_factor_at invited_at
        last_sign_in_at new_email new_phone password_by_key password_hash password_leaked_at password_set_at password_vouched
        phone_by_key phone_change_sent_at phone_proved sign_up_hash signup_user_agent updated_at user_metadata""",
}


def test_each_column_of_users_and_sessions_is_known_to_decide_or_not(database):
    """A new column needs an answer: should a token be refused if it changes while the hook is asked?"""
    read = shipped()["select_deciding"].direct
    for table, others in OTHERS.items():
        deciding = set(re.findall(rf"\b{table[0]}\.(\w+)", read))
        if f"end_of({table[0]})" in read:
            deciding |= {"ended_at", "provider_term"}
        columns = database.all(
            "SELECT column_name AS name FROM information_schema.columns"
            " WHERE table_schema = 'public' AND table_name = %(table)s",
            table=table,
        )
        assert deciding & set(others.split()) == set()
        assert {column.name for column in columns} == deciding | set(others.split())
