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

-- The factors that the link of a notice asks for: those older than seven days, and those that had this age
-- when they were removed in the last seven days. Rows without a link keep copies of these.
CREATE OR REPLACE FUNCTION asked_factors(owner uuid) RETURNS SETOF factors
  LANGUAGE sql STABLE
AS $$
  SELECT * FROM factors WHERE user_id = owner AND verified_at <= now() - recent_age()
   UNION ALL
  SELECT kept.*
    FROM one_time_tokens AS t
   CROSS JOIN LATERAL jsonb_populate_record(NULL::factors, t.restores) AS kept
   WHERE t.user_id = owner AND t.purpose = 'undo' AND t.restores ->> 'provider' = 'factor'
     AND t.expires_at > now() AND kept.verified_at <= t.created_at - recent_age()
     AND NOT EXISTS (SELECT FROM factors WHERE id = kept.id)
$$;

-- Whether the user can get the address of a link back: no other user has proved it since.
CREATE OR REPLACE FUNCTION comes_back(t one_time_tokens) RETURNS boolean
  LANGUAGE sql STABLE
AS $$
  SELECT NOT EXISTS (SELECT
                       FROM users AS u
                      WHERE u.id <> t.user_id AND has_proved(u, t.target))
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

CREATE OR REPLACE FUNCTION spend_link(hash bytea, purposes text[]) RETURNS SETOF one_time_tokens
  LANGUAGE sql VOLATILE
AS $$
  SELECT FROM users AS u JOIN one_time_tokens AS t ON t.user_id = u.id
   WHERE t.token_hash = hash
     FOR UPDATE OF u;
  UPDATE one_time_tokens AS t
     SET spent_at = now()
   WHERE t.token_hash = hash AND t.purpose = ANY (purposes) AND is_good_link(t)
  RETURNING t.*
$$;

-- A code that a page requested works only in its `browser`. Of the codes for this browser or for any, only
-- the newest works, across all purposes: otherwise a guess could hit any of them. `macs` are those of the
-- code with each key. After the numbers of `limits_of`, `failures` has the tries of a network for each code.
CREATE OR REPLACE FUNCTION use_code(
  address text, macs bytea[], purposes text[], browser bytea, here text, failures integer[]
) RETURNS SETOF one_time_tokens
  LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
  code one_time_tokens;
  guessed uuid;
  refused boolean;
BEGIN
  IF cardinality(macs) = 0 THEN RETURN; END IF;
  SELECT t.* INTO code FROM one_time_tokens AS t
   WHERE t.target = address AND t.code_mac IS NOT NULL
     AND (t.browser_hash IS NULL OR t.browser_hash = browser)
   ORDER BY t.created_at DESC LIMIT 1;
  guessed := CASE WHEN code.purpose = ANY (purposes) THEN code.id END;
  SELECT v.refused_by IS NOT NULL INTO refused
    FROM record_verdict(ARRAY[('try', coalesce(guessed::text, address), here, failures[5],
                               failures[6])::failure_limit]
                          || limits_of('code', 'code', address, code.user_id, here, failures), 1,
                        coalesce(is_open_code(code, macs, purposes), false)) AS v;
  PERFORM FROM users AS u
    WHERE u.id = ANY (ARRAY(SELECT t.user_id FROM one_time_tokens AS t
                             WHERE t.target = address AND t.code_mac IS NOT NULL))
    ORDER BY u.id FOR UPDATE;
  RETURN QUERY UPDATE one_time_tokens AS t SET spent_at = now()
                WHERE t.id = code.id AND NOT refused AND is_open_code(t, macs, purposes) RETURNING t.*;
END
$$;

CREATE OR REPLACE FUNCTION is_open_code(t one_time_tokens, macs bytea[], purposes text[]) RETURNS boolean
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT t.code_mac = ANY (macs) AND t.purpose = ANY (purposes) AND t.spent_at IS NULL
     AND t.code_expires_at > now()
$$;

-- The effects of a spent link or code on its user and address. If several people have signed up, their
-- messages look alike: only the page (`is_shown`) shows whose sign-up it is. An administrator's recovery link
-- may set a password. On nodes of 0.3.1, which do not always `open` a session, the browser of a sign-up
-- continues with the data of that sign-up. A session of the method `recovery` ends everything with its new
-- password. Call it with the user's row locked.
CREATE OR REPLACE FUNCTION confirm_address(token uuid, kind text, is_shown boolean, opens boolean, here text)
  RETURNS TABLE (is_first boolean, sets_password boolean)
  LANGUAGE plpgsql VOLATILE ROWS 1
AS $$
DECLARE
  t one_time_tokens := (SELECT spent FROM one_time_tokens AS spent WHERE spent.id = token);
  is_sign_up boolean := t.purpose IN ('signup', 'sms_signup');
  is_own boolean;
BEGIN
  is_first := prove_address(t.user_id, kind, t.target, t.purpose);
  is_own := is_first AND is_shown AND t.user_metadata IS NOT NULL;
  sets_password := t.password_hash IS NOT NULL AND (is_own OR NOT is_sign_up);
  IF sets_password THEN
    PERFORM set_password(t.user_id, t.password_hash);
  END IF;
  UPDATE one_time_tokens SET password_hash = NULL WHERE id = token AND is_sign_up AND opens;
  UPDATE identities SET last_sign_in_at = now() WHERE user_id = t.user_id AND provider = kind;
  UPDATE users
     SET last_sign_in_at = now(),
         user_metadata = CASE WHEN is_own THEN merge_metadata('{}', t.user_metadata) ELSE user_metadata END
   WHERE id = t.user_id;
  PERFORM record_mail_proof(t.user_id, here);
  IF t.purpose = 'recovery' AND method_of(t) <> 'recovery' THEN
    PERFORM end_access(t.user_id, NULL, 'recovered');
  END IF;
  PERFORM void_tokens(t.user_id);
  RETURN NEXT;
END
$$;
