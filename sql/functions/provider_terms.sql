-- What a customer's provider opened, and until when it gives tokens: identity_providers in schema.sql.

-- The terms of the providers, without those of organizations that have ended.
CREATE OR REPLACE FUNCTION present_terms() RETURNS TABLE (term uuid)
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT p.term
    FROM identity_providers AS p
    LEFT JOIN organizations AS o ON o.id = p.organization_id
   WHERE o.ended_at IS NULL
$$;

-- Whether what was opened in a term gives no token any more. What no provider opened has no term.
CREATE OR REPLACE FUNCTION is_over(term uuid) RETURNS boolean
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT is_over.term IS NOT NULL
     AND NOT EXISTS (SELECT FROM present_terms() AS present WHERE present.term = is_over.term)
$$;

-- The terms of sessions that have not been ended yet, looked up one after the other in the index, or each batch that ends
-- some would read all.
CREATE OR REPLACE FUNCTION terms_of_open_sessions() RETURNS TABLE (term uuid)
  LANGUAGE sql STABLE PARALLEL SAFE ROWS 10
AS $$
  WITH RECURSIVE terms (term) AS (
    (SELECT s.provider_term FROM sessions AS s
      WHERE s.provider_term IS NOT NULL AND s.ended_at IS NULL
      ORDER BY s.provider_term LIMIT 1)
     UNION ALL
    SELECT (SELECT s.provider_term FROM sessions AS s
             WHERE s.provider_term > terms.term AND s.ended_at IS NULL
             ORDER BY s.provider_term LIMIT 1)
      FROM terms
     WHERE terms.term IS NOT NULL
  )
  SELECT terms.term FROM terms WHERE terms.term IS NOT NULL
$$;

-- When a session ended: what decides whether it gives a token reads this, because `ended_at` is written in batches
-- after a term. Postgres puts the expression into each statement, and calls is_over for sessions with a term alone.
CREATE OR REPLACE FUNCTION end_of(s sessions) RETURNS timestamptz
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT CASE WHEN s.provider_term IS NULL OR s.ended_at IS NOT NULL THEN s.ended_at
              WHEN is_over(s.provider_term) THEN now() END
$$;

-- When an API key ends.
CREATE OR REPLACE FUNCTION end_of(k api_keys) RETURNS timestamptz
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT CASE WHEN k.provider_term IS NULL THEN k.expires_at
              WHEN is_over(k.provider_term) THEN least(k.expires_at, now())
              ELSE k.expires_at END
$$;

-- The term of the customer's provider that signs a user in, of the one that came last. It stands for the origin of
-- an API key that an import or a node of 0.7.x has written.
CREATE OR REPLACE FUNCTION term_of_identity(owner uuid) RETURNS uuid
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT p.term
    FROM identities AS i
    JOIN identity_providers AS p ON i.provider = provider_name(p)
   WHERE i.user_id = owner
   ORDER BY i.created_at DESC
   LIMIT 1
$$;

-- What a user still has from terms that are over.
CREATE OR REPLACE FUNCTION terms_over_of(owner uuid) RETURNS uuid[]
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT ARRAY(SELECT s.provider_term FROM sessions AS s
                WHERE s.user_id = owner AND s.ended_at IS NULL AND is_over(s.provider_term)
                UNION
               SELECT k.provider_term FROM api_keys AS k WHERE k.user_id = owner AND is_over(k.provider_term)
                UNION
               SELECT c.provider_term FROM authorization_codes AS c
                WHERE c.user_id = owner AND c.session_id IS NULL AND is_over(c.provider_term)
                UNION
               SELECT s.provider_term FROM one_time_tokens AS t JOIN sessions AS s ON s.id = t.session_id
                WHERE t.user_id = owner AND t.spent_at IS NULL AND t.purpose IN ('email_change', 'phone_change')
                  AND is_over(s.provider_term))
$$;

-- A provider that is turned off or disabled, or gets another issuer, begins a new term.
CREATE OR REPLACE FUNCTION begin_term() RETURNS trigger
  LANGUAGE plpgsql
AS $$
BEGIN
  NEW.term := gen_random_uuid();
  RETURN NEW;
END
$$;
CREATE OR REPLACE TRIGGER provider_begins_term BEFORE UPDATE ON identity_providers
  FOR EACH ROW WHEN (is_enabled(OLD) AND NOT is_enabled(NEW) OR NEW.is_blocked AND NOT OLD.is_blocked
                     OR NEW.issuer <> OLD.issuer)
  EXECUTE FUNCTION begin_term();

-- Until 0.9.0: nodes of 0.7.x write sessions, codes and keys without a term, and read only `ended_at`. The triggers
-- fill the term, and let nothing go on that is over: such a node answers 503. A restore brings the terms.

-- The customer's provider among the methods of a session. An operator's provider has another prefix, or none.
CREATE OR REPLACE FUNCTION provider_in(amr jsonb) RETURNS uuid
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
  SELECT substr(jsonb_path_query_first(amr, '$[*].provider ? (@ starts with "sso:")') #>> '{}', 5)::uuid
$$;

CREATE OR REPLACE FUNCTION refuse_over(term uuid) RETURNS void
  LANGUAGE plpgsql STABLE
AS $$
BEGIN
  IF is_over(term) THEN
    RAISE EXCEPTION 'the provider that opened this was turned off'
      USING ERRCODE = 'object_not_in_prerequisite_state';
  END IF;
END
$$;

-- The term of a deleted provider is its id, which is none.
CREATE OR REPLACE FUNCTION fill_term_of_session() RETURNS trigger
  LANGUAGE plpgsql SET search_path FROM CURRENT
AS $$
BEGIN
  NEW.provider_term := coalesce((SELECT s.provider_term FROM sessions AS s WHERE s.id = NEW.opened_by),
                                (SELECT p.term FROM identity_providers AS p WHERE p.id = provider_in(NEW.amr)),
                                provider_in(NEW.amr));
  PERFORM refuse_over(NEW.provider_term);
  RETURN NEW;
END
$$;
CREATE OR REPLACE TRIGGER session_begins BEFORE INSERT ON sessions
  FOR EACH ROW WHEN (NEW.amr IS NOT NULL AND NEW.provider_term IS NULL AND NEW.ended_at IS NULL)
  EXECUTE FUNCTION fill_term_of_session();

CREATE OR REPLACE FUNCTION fill_term_of_code() RETURNS trigger
  LANGUAGE plpgsql SET search_path FROM CURRENT
AS $$
BEGIN
  NEW.provider_term := (SELECT p.term FROM identity_providers AS p WHERE provider_name(p) = NEW.provider);
  RETURN NEW;
END
$$;
CREATE OR REPLACE TRIGGER code_begins BEFORE INSERT ON authorization_codes
  FOR EACH ROW WHEN (starts_with(NEW.provider, 'sso:') AND NEW.provider_term IS NULL)
  EXECUTE FUNCTION fill_term_of_code();

-- Such a node does not say which session adds a key.
CREATE OR REPLACE FUNCTION fill_term_of_key() RETURNS trigger
  LANGUAGE plpgsql SET search_path FROM CURRENT
AS $$
BEGIN
  PERFORM refuse_over(s.provider_term) FROM sessions AS s WHERE s.user_id = NEW.user_id AND s.ended_at IS NULL;
  NEW.provider_term := term_of_identity(NEW.user_id);
  RETURN NEW;
END
$$;
CREATE OR REPLACE TRIGGER key_begins BEFORE INSERT ON api_keys
  FOR EACH ROW WHEN (NEW.provider_term = '00000000-0000-0000-0000-000000000000') EXECUTE FUNCTION fill_term_of_key();

CREATE OR REPLACE FUNCTION check_term() RETURNS trigger
  LANGUAGE plpgsql SET search_path FROM CURRENT
AS $$
BEGIN
  PERFORM refuse_over(NEW.provider_term);
  RETURN NEW;
END
$$;
CREATE OR REPLACE TRIGGER session_goes_on BEFORE UPDATE OF counter, refreshed_at, refreshes ON sessions
  FOR EACH ROW WHEN (NEW.provider_term IS NOT NULL) EXECUTE FUNCTION check_term();
CREATE OR REPLACE TRIGGER code_opens BEFORE UPDATE OF session_id ON authorization_codes
  FOR EACH ROW WHEN (NEW.provider_term IS NOT NULL) EXECUTE FUNCTION check_term();
CREATE OR REPLACE TRIGGER key_goes_on BEFORE UPDATE OF refreshes ON api_keys
  FOR EACH ROW WHEN (NEW.provider_term IS NOT NULL) EXECUTE FUNCTION check_term();
