-- Inserts the row behind a link (token_hash, link_lifetime), a code (code_mac, code_lifetime) or both. Lifetimes are in seconds.
CREATE OR REPLACE FUNCTION write_token(
  token_id uuid, owner uuid, purpose text, target text, token_hash bytea DEFAULT NULL, link_lifetime integer DEFAULT NULL,
  code_mac bytea DEFAULT NULL, code_lifetime integer DEFAULT NULL, redirect_to text DEFAULT NULL, code_challenge text DEFAULT NULL,
  session_id uuid DEFAULT NULL, password_hash text DEFAULT NULL
) RETURNS void
  LANGUAGE sql VOLATILE
AS $$
  INSERT INTO one_time_tokens (
    id, user_id, purpose, target, token_hash, code_mac, code_expires_at, redirect_to, code_challenge, session_id, password_hash,
    expires_at
  )
  VALUES (
    token_id, owner, purpose, target, token_hash, code_mac,
    CASE WHEN code_mac IS NOT NULL THEN now() + make_interval(secs => code_lifetime) END,
    redirect_to, code_challenge, session_id, password_hash,
    now() + make_interval(secs => coalesce(link_lifetime, code_lifetime))
  )
$$;

-- Voids what could still sign a user in: links and codes, whose number it tells, and authorization codes. A message that waits to
-- carry one is not sent then. What was spent stays until it would have expired, so that it is known whose it was when somebody
-- brings it again. What undoes a change of email stays good: whoever has taken over a user would void it first.
CREATE OR REPLACE FUNCTION void_one_time_tokens(owner uuid) RETURNS bigint
  LANGUAGE sql VOLATILE
AS $$
  DELETE FROM authorization_codes WHERE user_id = owner AND session_id IS NULL;
  WITH voided AS (
    DELETE FROM one_time_tokens WHERE user_id = owner AND purpose <> 'email_restore' AND spent_at IS NULL RETURNING id
  )
  SELECT count(*) FROM voided
$$;

-- Whether a link can still be spent. Of a purpose the three newest are good; but of those that undo a change of email all, or
-- whoever has taken over a user would only have to change it three times more.
CREATE OR REPLACE FUNCTION is_good_link(token one_time_tokens) RETURNS boolean
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT token.spent_at IS NULL AND token.expires_at > now()
     AND (token.purpose = 'email_restore'
          OR 3 > (SELECT count(*)
                    FROM one_time_tokens AS newer
                   WHERE newer.user_id = token.user_id AND newer.purpose = token.purpose AND newer.created_at > token.created_at))
$$;

-- Spends the link with this hash, if it is one of the purposes, and still good.
CREATE OR REPLACE FUNCTION spend_link(hash bytea, purposes text[]) RETURNS SETOF one_time_tokens
  LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
  PERFORM account.id FROM users AS account JOIN one_time_tokens AS token ON token.user_id = account.id WHERE token.token_hash = hash
      FOR UPDATE OF account;
  RETURN QUERY
    UPDATE one_time_tokens AS token
       SET spent_at = now()
     WHERE token.token_hash = hash AND token.purpose = ANY (purposes) AND is_good_link(token)
    RETURNING token.*;
END
$$;

-- Tries a code that was sent to an address, for one of the purposes, and spends it when it is right. Each try is counted before
-- it is looked at: five kill a code, and twenty in a day that were wrong all codes of the address. The links beside them stay.
CREATE OR REPLACE FUNCTION spend_code(address text, mac bytea, purposes text[]) RETURNS SETOF one_time_tokens
  LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
  IF mac IS NULL OR (SELECT count FROM count_up('code ' || address, 86400)) > 20 THEN
    RETURN;
  END IF;
  PERFORM account.id
     FROM users AS account
    WHERE account.id = ANY (ARRAY(SELECT token.user_id FROM one_time_tokens AS token WHERE token.target = address AND token.code_mac IS NOT NULL))
    ORDER BY account.id
      FOR UPDATE;
  RETURN QUERY
    WITH tried AS (
      UPDATE one_time_tokens AS token
         SET tries = token.tries + 1,
             spent_at = CASE WHEN token.code_mac = mac THEN now() END
       WHERE token.target = address AND token.purpose = ANY (purposes) AND token.code_mac IS NOT NULL
         AND token.tries < 5 AND token.spent_at IS NULL AND token.code_expires_at > now()
         AND NOT EXISTS (SELECT FROM one_time_tokens AS newer
                          WHERE newer.user_id = token.user_id AND newer.purpose = token.purpose AND newer.code_mac IS NOT NULL
                            AND newer.created_at > token.created_at)
      RETURNING token.*
    )
    SELECT * FROM tried WHERE tried.spent_at IS NOT NULL;
  IF FOUND THEN
    UPDATE failure_counts AS counter SET count = greatest(counter.count - 1, 0) WHERE counter.key = 'code ' || address;
  END IF;
END
$$;
