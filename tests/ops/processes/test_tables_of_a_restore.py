"""A restored backup must not bring back what has ended."""

# Other tables with an expiry time hold no credentials.
HARMLESS = {"failure_counts", "probes", "request_counts", "spent_captchas", "spent_id_tokens"}


def test_every_table_whose_rows_expire_is_emptied_or_known_to_be_harmless(database):
    rows = database.all(
        "SELECT table_name AS name FROM information_schema.columns"
        " WHERE table_schema = 'public' AND column_name = 'expires_at'"
    )
    voided = {"one_time_tokens", "authorization_codes", "oauth_flows", "oauth_requests", "outbox"}
    voided |= {"typed_addresses"}
    # A restore brings back keys like passwords, as docs/api-keys.md says, and its command names administrative keys.
    # It brings back members and their invitations, too.
    kept = {"api_keys", "admin_keys", "factor_challenges", "organization_invitations"}
    assert {row.name for row in rows} == voided | kept | HARMLESS
