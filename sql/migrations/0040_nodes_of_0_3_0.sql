-- What served nodes of 0.3.0. Counts of those from before 0.4.0 have a key and no columns.
DROP TRIGGER IF EXISTS failure_counts_without_columns ON failure_counts;
DROP TRIGGER IF EXISTS oauth_clients_previous_secret ON oauth_clients;
DROP INDEX failure_counts_key;
DELETE FROM failure_counts WHERE kind IS NULL;
DROP FUNCTION IF EXISTS session_state(users, sessions, bigint, integer, integer);
DROP FUNCTION IF EXISTS client_state(users, sessions, oauth_clients, bigint, integer, integer);
DROP FUNCTION IF EXISTS api_key_state(users, api_keys, bigint);
DROP FUNCTION IF EXISTS open_session(uuid, text, inet, text, text, integer, integer, integer);
DROP FUNCTION IF EXISTS end_sessions(uuid, uuid, text);
DROP FUNCTION IF EXISTS end_session_and_opened(uuid, uuid, text);
DROP FUNCTION IF EXISTS signed_up_by_phone(users);
DROP FUNCTION IF EXISTS refresh_token_is_stolen(sessions, bigint, integer);
DROP FUNCTION IF EXISTS refreshes_used_up(sessions, integer);
DROP FUNCTION IF EXISTS undone_since(uuid, timestamptz);
DROP FUNCTION IF EXISTS had_no_address(uuid, timestamptz);
DROP FUNCTION IF EXISTS proved_with_older(sessions);
DROP FUNCTION IF EXISTS undone_by(one_time_tokens);
DROP FUNCTION IF EXISTS refusal_of_act(
  text, users, sessions, text, text, text, integer, integer, text, text, timestamptz, timestamptz
);
DROP FUNCTION IF EXISTS take_back_attempt(text, text, boolean);
DROP FUNCTION IF EXISTS has_own_tries(uuid, text);
DROP FUNCTION IF EXISTS pass_second_step(uuid, text);
DROP FUNCTION IF EXISTS spend_code(text, bytea[], text[], bytea);
DROP FUNCTION IF EXISTS count_up(text, integer);
DROP FUNCTION IF EXISTS take_from_quota(text[], integer[], integer[]);
DROP FUNCTION IF EXISTS fill_failure_count();
DROP FUNCTION IF EXISTS end_previous_secret();
DROP FUNCTION IF EXISTS void_one_time_tokens(uuid);
DROP FUNCTION IF EXISTS is_listed(audit_log, uuid, text, timestamptz, timestamptz, text);
DROP FUNCTION IF EXISTS identities_with(identities, uuid);
DROP FUNCTION IF EXISTS user_object(users, json, text[]);
DROP FUNCTION IF EXISTS user_object(users, json, text[], text);
DROP FUNCTION IF EXISTS added_to(uuid, timestamptz);
DROP FUNCTION IF EXISTS caller_state(users, sessions, bigint, integer, integer);
DROP FUNCTION IF EXISTS locked_caller_state(uuid, uuid, bigint, integer, integer, boolean, integer);
DROP FUNCTION IF EXISTS locked_caller_state(
  uuid, uuid, bigint, integer, integer, boolean, integer, text, text, text, boolean
);
DROP FUNCTION IF EXISTS refusal_of_acts(
  users, sessions, text, text, text, integer, integer, text[], text[], text[]
);
DROP FUNCTION IF EXISTS page_of_users(text, text, text, text, boolean, integer, bigint);
DROP FUNCTION IF EXISTS spend_code(text, bytea, text[]);
DROP FUNCTION IF EXISTS spend_code(text, bytea[], text[]);
DROP FUNCTION IF EXISTS timeline_of(uuid, integer, integer, bigint);
DROP FUNCTION IF EXISTS timeline_of_sessions(uuid, integer, integer);
