-- Usable from 0061
-- What a customer's provider opened: see identity_providers in schema.sql.
ALTER TABLE identity_providers ADD term uuid NOT NULL DEFAULT gen_random_uuid()
  CONSTRAINT identity_providers_term_key UNIQUE;
ALTER TABLE sessions ADD provider_term uuid;
ALTER TABLE identities ADD is_first_proof boolean;
ALTER TABLE authorization_codes ADD provider_term uuid;
ALTER TABLE api_keys ADD provider_term uuid;
ALTER TABLE api_keys ALTER provider_term SET DEFAULT '00000000-0000-0000-0000-000000000000';

-- For nodes of 0.7.x, until the functions and triggers of sql/functions replace these in the next step.
CREATE FUNCTION fill_term_of_session() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  NEW.provider_term := coalesce(
    (SELECT s.provider_term FROM sessions AS s WHERE s.id = NEW.opened_by),
    (SELECT p.term FROM identity_providers AS p WHERE NEW.amr @> jsonb_build_array(jsonb_build_object('provider', 'sso:' || p.id))));
  RETURN NEW;
END
$$;
CREATE TRIGGER session_begins BEFORE INSERT ON sessions
  FOR EACH ROW WHEN (NEW.amr IS NOT NULL AND NEW.provider_term IS NULL) EXECUTE FUNCTION fill_term_of_session();
CREATE FUNCTION fill_term_of_code() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  NEW.provider_term := (SELECT p.term FROM identity_providers AS p WHERE 'sso:' || p.id = NEW.provider);
  RETURN NEW;
END
$$;
CREATE TRIGGER code_begins BEFORE INSERT ON authorization_codes
  FOR EACH ROW WHEN (starts_with(NEW.provider, 'sso:') AND NEW.provider_term IS NULL)
  EXECUTE FUNCTION fill_term_of_code();
CREATE FUNCTION fill_term_of_key() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  NEW.provider_term := (SELECT p.term FROM identities AS i JOIN identity_providers AS p ON i.provider = 'sso:' || p.id
                         WHERE i.user_id = NEW.user_id ORDER BY i.created_at DESC LIMIT 1);
  RETURN NEW;
END
$$;
CREATE TRIGGER key_begins BEFORE INSERT ON api_keys
  FOR EACH ROW WHEN (NEW.provider_term = '00000000-0000-0000-0000-000000000000') EXECUTE FUNCTION fill_term_of_key();

-- A session from before its provider was turned off, which its end has not reached, gets the id of the provider, which
-- is no term; so does one of a deleted provider.
UPDATE sessions AS s
   SET provider_term = CASE WHEN p.enabled OR p.is_on OR s.created_at >= coalesce(p.disabled_at, p.updated_at)
                            THEN p.term ELSE opened.provider_id END
  FROM (SELECT id, substr(jsonb_path_query_first(amr, '$[*].provider ? (@ starts with "sso:")') #>> '{}', 5)::uuid
                     AS provider_id
          FROM sessions
         WHERE ended_at IS NULL AND amr IS NOT NULL) AS opened
  LEFT JOIN identity_providers AS p ON p.id = opened.provider_id
 WHERE s.id = opened.id AND opened.provider_id IS NOT NULL;
UPDATE authorization_codes AS c SET provider_term = p.term FROM identity_providers AS p WHERE c.provider = 'sso:' || p.id;
-- An API key from before says no session: it ends with the identity.
UPDATE api_keys AS k
   SET provider_term = (SELECT p.term
                          FROM identities AS i
                          JOIN identity_providers AS p ON i.provider = 'sso:' || p.id
                         WHERE i.user_id = k.user_id
                         ORDER BY i.created_at DESC
                         LIMIT 1)
 WHERE k.user_id IN (SELECT i.user_id FROM identities AS i WHERE starts_with(i.provider, 'sso:'));
UPDATE identity_providers SET disabled_at = to_timestamp(0);
ALTER TABLE identity_providers ALTER disabled_at SET DEFAULT to_timestamp(0);
CREATE INDEX sessions_provider_term ON sessions (provider_term) WHERE provider_term IS NOT NULL AND ended_at IS NULL;
CREATE INDEX api_keys_provider_term ON api_keys (provider_term) WHERE provider_term IS NOT NULL;
ALTER DOMAIN session_end_reason DROP CONSTRAINT session_end_reason_check;
ALTER DOMAIN session_end_reason ADD CONSTRAINT session_end_reason_check CHECK (
  VALUE IN ('logout', 'ended_by_user', 'ended_by_admin', 'refresh_token_reused', 'password_changed',
            'email_changed', 'banned', 'address_proved', 'email_restored',
            'authorization_code_reused', 'too_many_sessions', 'way_to_sign_in_removed', 'change_undone',
            'factor_added', 'others_signed_out', 'phone_changed', 'identity_linked', 'recovered',
            'reset_by_admin', 'access_lost', 'restored', 'provider_disabled', 'provider_lost', 'promoted')
);
