-- name: select_used_link(browser_hash bytea, target text, purpose text) -> row?
-- Whose link or code this browser asked for, once it has been used anywhere.
SELECT t.user_id, t.purpose = 'signup' AND t.password_hash IS NULL AS has_gone_on
  FROM one_time_tokens AS t
 WHERE t.browser_hash = :browser_hash AND t.target = :target AND t.purpose = :purpose
   AND t.spent_at IS NOT NULL AND t.expires_at > now()
 LIMIT 1;

-- name: lock_confirmed_sign_up(browser_hash bytea, target text) -> row?
-- An equal hash is the password of this sign-up: those of an address have the same salt.
-- A user who has signed out since may have left the browser to another person.
SELECT u.id, u.email, t.id AS token_id
  FROM users AS u
  JOIN one_time_tokens AS t ON t.user_id = u.id
 WHERE t.browser_hash = :browser_hash AND t.target = :target AND t.purpose = 'signup'
   AND t.spent_at IS NOT NULL AND t.expires_at > now()
   AND t.password_hash = u.password_hash AND t.target = u.email
   AND sign_in_refusal(u, 'email', true, true, false) IS NULL
   AND NOT EXISTS (SELECT FROM sessions AS s WHERE s.user_id = u.id AND s.ended_at > t.spent_at)
 LIMIT 1
   FOR UPDATE OF u;

-- name: use_confirmed_sign_up(token_id uuid)
-- Once, and not after its own link or code has opened a session.
UPDATE one_time_tokens SET password_hash = NULL WHERE id = :token_id AND password_hash IS NOT NULL;
