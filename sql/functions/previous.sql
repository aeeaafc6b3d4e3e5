-- Only nodes of 0.7.0 and 0.7.1 call these functions, with the newest text of both. They go with the release after this one.
-- `python -m tests.support.previous_release` writes this file.

-- `done_by` is the id of a user who acted on another user or on the service, or an actor that has no id. Find
-- what users do to themselves by `subject`.
CREATE OR REPLACE FUNCTION audit_entries(
  subject uuid, done_by text, wanted_action text, since timestamptz, until timestamptz,
  wanted_request_id text, before_at timestamptz, before_id uuid, most integer
) RETURNS SETOF audit_log
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT a.*
    FROM audit_log AS a
   WHERE entry_is_listed(a, subject, wanted_action, since, until, wanted_request_id)
     AND (done_by IS NULL
          OR coalesce(a.actor_id::text, a.actor) = done_by
             AND a.actor <> 'anonymous' AND (a.actor <> 'user' OR a.user_id IS DISTINCT FROM a.actor_id))
     AND (before_at IS NULL OR (a.at, a.id) < (before_at, before_id))
   ORDER BY a.at DESC, a.id DESC
   LIMIT most
$$;

-- Ends everything of a user, links and codes included, from before a moment, and the sessions for applications that these
-- sessions have opened since. Call it with the user's row locked.
CREATE OR REPLACE FUNCTION end_everything_before(
  earlier timestamptz, owner uuid, reason text, moment timestamptz
) RETURNS void
  LANGUAGE sql VOLATILE
AS $$
  DELETE FROM authorization_codes WHERE user_id = owner AND session_id IS NULL AND created_at < earlier;
  DELETE FROM oauth_requests
   WHERE user_id = owner AND session_id IS NOT NULL AND opened_session_id IS NULL AND created_at < earlier;
  DELETE FROM api_keys WHERE user_id = owner AND created_at < earlier;
  DELETE FROM oauth_grants WHERE user_id = owner AND granted_at < earlier;
  DELETE FROM identity_provider_adoptions WHERE user_id = owner AND adopted_at < earlier;
  DELETE FROM organization_invitations WHERE invited_by = owner AND created_at < earlier;
  UPDATE sessions SET ended_at = moment, end_reason = end_everything_before.reason
   WHERE user_id = owner AND ended_at IS NULL AND id IN (
    WITH RECURSIVE own (id) AS (
      SELECT id FROM sessions WHERE user_id = owner AND created_at < earlier UNION
      SELECT s.id FROM sessions AS s JOIN own ON s.opened_by = own.id WHERE s.user_id = owner)
    SELECT id FROM own);
  UPDATE users
     SET new_email = NULL, email_change_sent_at = NULL, new_phone = NULL, phone_change_sent_at = NULL
   WHERE id = owner AND greatest(email_change_sent_at, phone_change_sent_at) < earlier;
  DELETE FROM one_time_tokens
   WHERE user_id = owner AND purpose <> 'undo' AND spent_at IS NULL AND created_at < earlier
$$;

CREATE OR REPLACE FUNCTION domain_object(d organization_domains) RETURNS jsonb
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT jsonb_strip_nulls(jsonb_build_object(
    'domain', d.domain,
    'name', '_latchkey.' || d.domain,
    'value', 'latchkey=' || d.token,
    'proved_at', iso_8601(d.proved_at),
    'checked_at', iso_8601(d.checked_at),
    'missing_since', iso_8601(d.missing_since)
  ))
$$;

-- In the format of the official clients: without `last_used_at` before the first use.
CREATE OR REPLACE FUNCTION passkey_object(f factors) RETURNS jsonb
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT jsonb_strip_nulls(jsonb_build_object(
    'id', f.id,
    'friendly_name', f.friendly_name,
    'created_at', iso_8601(f.created_at),
    'last_used_at', iso_8601(f.last_used_at)
  ))
$$;

-- True if an administrative key acts, else null, so that a row tells nothing of other writers.
CREATE OR REPLACE FUNCTION is_of_key(origin jsonb) RETURNS boolean
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
  SELECT CASE WHEN origin ->> 'actor' = 'service_role' AND origin ->> 'actor_id' IS NOT NULL THEN true END
$$;

-- `email_by_key` or `phone_by_key` of a user whose address becomes `address`. An operator vouches for it. A code that is
-- sent to it does not: its reader may be the key's holder.
CREATE OR REPLACE FUNCTION address_by_key(origin jsonb, address text, before text) RETURNS text
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
  SELECT CASE WHEN is_of_key(origin) THEN address
              WHEN origin ->> 'actor' NOT IN ('service_role', 'command') THEN before END
$$;

-- True if a key acts, or its holder may: a user whom a password or address of a key signs in.
CREATE OR REPLACE FUNCTION may_be_keys_holder(origin jsonb, u users) RETURNS boolean
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT CASE WHEN is_of_key(origin) OR origin ->> 'actor' NOT IN ('service_role', 'command')
                AND (u.password_by_key OR u.email = u.email_by_key OR u.phone = u.phone_by_key) THEN true END
$$;

-- Ends everything of a user, links and codes included, from before a moment, and the sessions for applications that these
-- sessions have opened since. Call it with the user's row locked.
CREATE OR REPLACE FUNCTION end_all_before(
  earlier timestamptz, owner uuid, reason text, moment timestamptz
) RETURNS void
  LANGUAGE sql VOLATILE
AS $$
  DELETE FROM authorization_codes WHERE user_id = owner AND session_id IS NULL AND created_at < earlier;
  DELETE FROM oauth_requests
   WHERE user_id = owner AND session_id IS NOT NULL AND opened_session_id IS NULL AND created_at < earlier;
  DELETE FROM api_keys WHERE user_id = owner AND created_at < earlier;
  DELETE FROM oauth_grants WHERE user_id = owner AND granted_at < earlier;
  DELETE FROM identity_provider_adoptions WHERE user_id = owner AND adopted_at < earlier;
  DELETE FROM organization_invitations WHERE invited_by = owner AND created_at < earlier;
  UPDATE sessions SET ended_at = moment, end_reason = end_all_before.reason
   WHERE user_id = owner AND ended_at IS NULL AND id IN (
    WITH RECURSIVE own (id) AS (
      SELECT id FROM sessions WHERE user_id = owner AND created_at < earlier UNION
      SELECT s.id FROM sessions AS s JOIN own ON s.opened_by = own.id WHERE s.user_id = owner)
    SELECT id FROM own);
  UPDATE users
     SET new_email = CASE WHEN email_change_sent_at >= earlier THEN new_email END,
         email_change_sent_at = CASE WHEN email_change_sent_at >= earlier THEN email_change_sent_at END,
         new_phone = CASE WHEN phone_change_sent_at >= earlier THEN new_phone END,
         phone_change_sent_at = CASE WHEN phone_change_sent_at >= earlier THEN phone_change_sent_at END
   WHERE id = owner AND least(email_change_sent_at, phone_change_sent_at) < earlier;
  DELETE FROM one_time_tokens
   WHERE user_id = owner AND purpose <> 'undo' AND spent_at IS NULL AND created_at < earlier
$$;
