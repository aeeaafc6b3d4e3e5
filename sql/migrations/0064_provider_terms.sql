-- Usable from 0061
-- What a customer's provider opened: see identity_providers in schema.sql. The next migration fills the columns, because
-- this one locks the tables.
ALTER TABLE identity_providers ADD term uuid NOT NULL DEFAULT gen_random_uuid()
  CONSTRAINT identity_providers_term_key UNIQUE;
ALTER TABLE sessions ADD provider_term uuid;
ALTER TABLE identities ADD is_first_proof boolean;
ALTER TABLE authorization_codes ADD provider_term uuid;
ALTER TABLE api_keys ADD provider_term uuid;
ALTER TABLE api_keys ALTER provider_term SET DEFAULT '00000000-0000-0000-0000-000000000000';

-- For nodes of 0.7.x, until the functions and triggers of sql/functions replace these in the last step.
CREATE FUNCTION begin_term() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.term := gen_random_uuid();
  RETURN NEW;
END
$$;
CREATE TRIGGER provider_begins_term BEFORE UPDATE ON identity_providers
  FOR EACH ROW WHEN ((OLD.enabled OR OLD.is_on) AND NOT (NEW.enabled OR NEW.is_on)
                     OR NEW.is_blocked AND NOT OLD.is_blocked OR NEW.issuer <> OLD.issuer)
  EXECUTE FUNCTION begin_term();
CREATE FUNCTION provider_in(amr jsonb) RETURNS uuid LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT substr(jsonb_path_query_first(amr, '$[*].provider ? (@ starts with "sso:")') #>> '{}', 5)::uuid
$$;
CREATE FUNCTION fill_term_of_session() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  NEW.provider_term := coalesce((SELECT s.provider_term FROM sessions AS s WHERE s.id = NEW.opened_by),
                                (SELECT p.term FROM identity_providers AS p WHERE p.id = provider_in(NEW.amr)),
                                provider_in(NEW.amr));
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
