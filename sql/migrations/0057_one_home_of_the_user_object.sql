-- Usable from 0055
-- Nodes of 0.6.1 make the user object from `users`, `identities` and `factors`, and read the order of users alone.
DROP TRIGGER IF EXISTS users_object ON users;
DROP TRIGGER IF EXISTS identities_object ON identities;
DROP TRIGGER IF EXISTS factors_object ON factors;
ALTER TABLE user_objects DROP COLUMN object, RESET (fillfactor);
-- As in sql/functions, which are replaced in another step: no sign-in between the two is lost.
CREATE OR REPLACE FUNCTION user_has_signed_in() RETURNS trigger
  LANGUAGE plpgsql
AS $$
BEGIN
  INSERT INTO user_objects (user_id, last_sign_in_at)
  VALUES (NEW.id, coalesce(NEW.last_sign_in_at, '-infinity'))
  ON CONFLICT (user_id) DO UPDATE SET last_sign_in_at = excluded.last_sign_in_at;
  RETURN NULL;
END
$$;
CREATE OR REPLACE TRIGGER users_signed_in
  AFTER INSERT OR UPDATE OF last_sign_in_at ON users FOR EACH ROW EXECUTE FUNCTION user_has_signed_in();

-- Only nodes of 0.5.2 called these.
DROP FUNCTION IF EXISTS active_users(integer);
DROP FUNCTION IF EXISTS additions_to(uuid, timestamptz);
DROP FUNCTION IF EXISTS api_key_state(users, api_keys, bigint, text);
DROP FUNCTION IF EXISTS asked_factors(uuid);
DROP FUNCTION IF EXISTS authenticated_at(sessions);
DROP FUNCTION IF EXISTS begin_session(uuid, uuid, text, inet, text, text, integer, integer, integer);
DROP FUNCTION IF EXISTS caller_state(users, sessions, bigint, integer, integer, text, text, text);
DROP FUNCTION IF EXISTS can_sign_in(uuid, text[]);
DROP FUNCTION IF EXISTS client_refusal(oauth_clients, text, bytea);
DROP FUNCTION IF EXISTS client_state(users, sessions, oauth_clients, bigint, integer, integer, text);
DROP FUNCTION IF EXISTS comes_back(one_time_tokens);
DROP FUNCTION IF EXISTS confirm_address(uuid, text, boolean, boolean, text);
DROP FUNCTION IF EXISTS count_lock_waits();
DROP FUNCTION IF EXISTS end_access(uuid, uuid, text);
DROP FUNCTION IF EXISTS end_all_access();
DROP FUNCTION IF EXISTS end_lost_access(users);
DROP FUNCTION IF EXISTS end_of(sessions, integer, integer);
DROP FUNCTION IF EXISTS end_of_ban(double precision);
DROP FUNCTION IF EXISTS end_of_key(api_keys);
DROP FUNCTION IF EXISTS end_sizes();
DROP FUNCTION IF EXISTS ended_before(identity_providers);
DROP FUNCTION IF EXISTS enter_user_code(bytea[], uuid, uuid, text, integer[]);
DROP FUNCTION IF EXISTS factor_has_changed();
DROP FUNCTION IF EXISTS factors_member(uuid);
DROP FUNCTION IF EXISTS found_in_sample(text);
DROP FUNCTION IF EXISTS fresh_age();
DROP FUNCTION IF EXISTS gives_token(users, bigint, text, boolean);
DROP FUNCTION IF EXISTS has_proved(users, text);
DROP FUNCTION IF EXISTS has_room_for_webhook(integer);
DROP FUNCTION IF EXISTS has_second_step(uuid);
DROP FUNCTION IF EXISTS has_verified_factor(uuid);
DROP FUNCTION IF EXISTS identities_of(uuid);
DROP FUNCTION IF EXISTS identity_has_changed();
DROP FUNCTION IF EXISTS is_echo(sessions, bigint);
DROP FUNCTION IF EXISTS is_fresh_recovery(sessions);
DROP FUNCTION IF EXISTS is_known_network(uuid, text);
DROP FUNCTION IF EXISTS is_last_administrator(users);
DROP FUNCTION IF EXISTS is_new_sign_in(users, text, text);
DROP FUNCTION IF EXISTS is_open_code(one_time_tokens, bytea[], text[]);
DROP FUNCTION IF EXISTS is_open_to(oauth_requests, uuid);
DROP FUNCTION IF EXISTS is_proved(users, text);
DROP FUNCTION IF EXISTS is_recent_address(uuid, text);
DROP FUNCTION IF EXISTS is_unused_sign_up(users);
DROP FUNCTION IF EXISTS keeps_password(users);
DROP FUNCTION IF EXISTS know_network(uuid, text);
DROP FUNCTION IF EXISTS lacks_level(users, sessions, text, text, text);
DROP FUNCTION IF EXISTS lacks_step(users, text, text, boolean);
DROP FUNCTION IF EXISTS level_of(sessions, text);
DROP FUNCTION IF EXISTS limits_of(text, text, text, uuid, text, integer[]);
DROP FUNCTION IF EXISTS live_client_sessions(uuid, integer, integer);
DROP FUNCTION IF EXISTS live_sessions(uuid, integer, integer);
DROP FUNCTION IF EXISTS lock_administrators();
DROP FUNCTION IF EXISTS locked_caller_state(uuid, uuid, bigint, integer, integer, text, text, text, text, integer, integer, text[], text[], text[]);
DROP FUNCTION IF EXISTS locked_has_second_step(uuid);
DROP FUNCTION IF EXISTS locked_what_decides(uuid, uuid);
DROP FUNCTION IF EXISTS may_take_back(sessions, timestamptz);
DROP FUNCTION IF EXISTS method_of(one_time_tokens);
DROP FUNCTION IF EXISTS methods_with(sessions, text);
DROP FUNCTION IF EXISTS must_have_step(users, text);
DROP FUNCTION IF EXISTS outbox_target(text, text);
DROP FUNCTION IF EXISTS own_hash(users);
DROP FUNCTION IF EXISTS page_of_users(text, text, text, text, boolean, integer, bigint, boolean);
DROP FUNCTION IF EXISTS password_limits(text, uuid, text, integer[]);
DROP FUNCTION IF EXISTS previous_secret_end(oauth_clients);
DROP FUNCTION IF EXISTS prove_address(uuid, text, text, text);
DROP FUNCTION IF EXISTS proved_at(sessions);
DROP FUNCTION IF EXISTS proved_at(users, sessions);
DROP FUNCTION IF EXISTS recent_age();
DROP FUNCTION IF EXISTS record_acts(jsonb, uuid, text, text[], text[], jsonb);
DROP FUNCTION IF EXISTS record_mail_proof(uuid, text);
DROP FUNCTION IF EXISTS record_password_verdict(text, text, text, boolean, integer[]);
DROP FUNCTION IF EXISTS refresh_act(sessions, bigint, boolean, jsonb);
DROP FUNCTION IF EXISTS refresh_refusal(sessions, bigint, integer);
DROP FUNCTION IF EXISTS refresh_window(integer, timestamptz, integer);
DROP FUNCTION IF EXISTS refreshed(sessions, bigint, boolean, integer, integer);
DROP FUNCTION IF EXISTS refreshed_echoes(sessions, bigint, boolean, integer);
DROP FUNCTION IF EXISTS refusal_of_act(text, users, sessions, text, text, text, integer, integer, text, text, timestamptz);
DROP FUNCTION IF EXISTS remove_factors(uuid, uuid[]);
DROP FUNCTION IF EXISTS second_steps(uuid);
DROP FUNCTION IF EXISTS set_address(uuid, text, text, boolean, boolean);
DROP FUNCTION IF EXISTS set_password(uuid, text);
DROP FUNCTION IF EXISTS sign_in_refusal(users, text, boolean, boolean, boolean);
DROP FUNCTION IF EXISTS spend_link(bytea, text[]);
DROP FUNCTION IF EXISTS statement_without_values(text);
DROP FUNCTION IF EXISTS tell_administrators(text, integer);
DROP FUNCTION IF EXISTS total_of_users(text, text, text, boolean, integer);
DROP FUNCTION IF EXISTS use_code(text, bytea[], text[], bytea, text, integer[]);
DROP FUNCTION IF EXISTS user_has_changed();
DROP FUNCTION IF EXISTS user_object(users);
DROP FUNCTION IF EXISTS what_decides(text, sessions);
DROP FUNCTION IF EXISTS with_audience(text, text);
DROP FUNCTION IF EXISTS with_second_step(jsonb, text);
DROP FUNCTION IF EXISTS without_ended_ban(text);
DROP FUNCTION IF EXISTS write_message(uuid, uuid, text, text, jsonb, bytea, uuid, timestamptz, float, boolean);
DROP FUNCTION IF EXISTS write_user_object(uuid);
DROP FUNCTION IF EXISTS written_user_object(users);
