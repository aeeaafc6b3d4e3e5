-- The link of a notice stays valid, because a thief would void it first. A pending change is deleted with its
-- link, or POST /resend would send another.
CREATE OR REPLACE FUNCTION void_tokens(owner uuid) RETURNS void
  LANGUAGE sql VOLATILE
AS $$
  DELETE FROM authorization_codes WHERE user_id = owner AND session_id IS NULL;
  UPDATE users
     SET new_email = NULL, email_change_sent_at = NULL, new_phone = NULL, phone_change_sent_at = NULL
   WHERE id = owner AND (new_email IS NOT NULL OR new_phone IS NOT NULL);
  DELETE FROM one_time_tokens WHERE user_id = owner AND purpose <> 'undo' AND spent_at IS NULL
$$;

-- The encrypted TOTP secret of a removed factor, which is kept.
CREATE OR REPLACE FUNCTION removed_secret(t one_time_tokens) RETURNS bytea
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
  SELECT decode(substr(t.restores ->> 'secret', 3), 'hex')
   WHERE t.purpose = 'undo' AND t.spent_at IS NULL AND t.restores ->> 'provider' = 'factor'
$$;

-- The link of a notice stays valid, or a thief could void it by three more changes.
CREATE OR REPLACE FUNCTION is_good_link(t one_time_tokens) RETURNS boolean
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT t.spent_at IS NULL AND t.expires_at > now()
     AND (t.purpose = 'undo' OR t.user_metadata IS NOT NULL
          OR 3 > (SELECT count(*)
                    FROM one_time_tokens AS newer
                   WHERE newer.user_id = t.user_id AND newer.purpose = t.purpose
                     AND newer.user_metadata IS NULL AND newer.created_at > t.created_at))
$$;
