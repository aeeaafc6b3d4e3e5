-- Decides who may add, change or remove credentials of a user: the table "Who may change what" of
-- docs/security.md, which tests/web/test_proofs_of_acts.py compares with `refusal_of_act`.

-- How long a proof is fresh. `PROOF_AGE` in auth/flows/sign_in/reauthentication.py is the same.
CREATE OR REPLACE FUNCTION fresh_age() RETURNS interval
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$ SELECT interval '15 minutes' $$;

-- How long an addition is recent, so that a thief may have made it: see `additions_to` and `asked_factors`.
CREATE OR REPLACE FUNCTION recent_age() RETURNS interval
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$ SELECT interval '7 days' $$;

-- A user who changed an address within a week may be a thief: codes to this address cannot add the first
-- factor of an administrator.
CREATE OR REPLACE FUNCTION is_recent_address(owner uuid, address text) RETURNS boolean
  LANGUAGE sql STABLE
AS $$
  SELECT EXISTS (SELECT
                   FROM additions_to(owner, now() - recent_age()) AS added
                  WHERE added.type IN ('email', 'phone') AND added.label = address)
$$;

-- The method of the session that a link or code opens. Only a recovery that we mailed to the user's own
-- address is a `recovery`: a generated link proves nothing about the mailbox.
CREATE OR REPLACE FUNCTION method_of(t one_time_tokens) RETURNS text
  LANGUAGE sql STABLE
AS $$
  SELECT CASE WHEN t.purpose = 'recovery'
                   AND EXISTS (SELECT FROM outbox AS o
                                WHERE o.user_id = t.user_id AND o.one_time_token_id = t.id)
              THEN 'recovery' ELSE 'otp' END
$$;

-- Whether a session below `aal2` may remove an addition that a thief may have made: one younger than seven
-- days and older than the session, while no factor is older than seven days. A raised session shows that its
-- user has a factor, so its earlier tokens do not count.
CREATE OR REPLACE FUNCTION may_take_back(s sessions, added_at timestamptz) RETURNS boolean
  LANGUAGE sql STABLE
AS $$
  SELECT added_at > now() - recent_age() AND added_at < s.created_at
     AND s.aal = 'aal1' AND s.opened_by IS NULL AND s.method = 'recovery'
     AND NOT EXISTS (SELECT
                       FROM factors AS f
                      WHERE f.user_id = s.user_id AND f.verified_at <= now() - recent_age())
$$;

-- The time of a session's last proof: with a factor, if the user has one. A thief of an old session may know
-- the password, or read the mail.
CREATE OR REPLACE FUNCTION proved_at(u users, s sessions) RETURNS timestamptz
  LANGUAGE sql STABLE
AS $$
  SELECT CASE WHEN has_verified_factor(u.id) THEN s.factor_proved_at ELSE proved_at(s) END
$$;

-- Whether a recovery is fresh: within the lifetime of a code. It is the proof for the new password, even with
-- AUTH_REAUTHENTICATION_AGE=always. `PAGE_CODE_LIFETIME` in auth/core/promises.py is the same.
CREATE OR REPLACE FUNCTION is_fresh_recovery(s sessions) RETURNS boolean
  LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT s.method = 'recovery' AND s.opened_by IS NULL AND s.created_at > now() - interval '10 minutes'
$$;

-- The key of the error that refuses an act, or null.
--   actor     `session`, `administrator` (in the console or by an access token), `service_role` (the key, and
--             commands)
--   s, aal    the session and the level of its access token
--   required  AUTH_MFA_REQUIRED
--   given     what the request itself brought: `factor` for the code of an app, `code` for one from the
--             user's mailbox, else `proof`; or `begun` if the act began with the proof
--   proof_age, change_age   how many seconds a proof, and a sign-in, count; null for ever
--   added_at  when the credential was added; null for one that the user was created with, and for a factor
--             that is not verified
CREATE OR REPLACE FUNCTION refusal_of_act(
  actor text, u users, s sessions, aal text, required text, given text, proof_age integer, change_age integer,
  act text, kind text, added_at timestamptz
) RETURNS text
  LANGUAGE sql STABLE
AS $$
  SELECT CASE
    WHEN actor = 'service_role' THEN NULL
    WHEN actor = 'administrator' THEN CASE WHEN u.role = 'admin' THEN 'target.insufficient_permissions' END
    WHEN lacks_level(u, s, aal,
                     CASE WHEN kind = 'metadata' THEN 'aal1'
                          -- A factor that AUTH_MFA_REQUIRED requires need not come first.
                          WHEN kind IN ('grant', 'api_key') AND act = 'remove'
                          THEN CASE WHEN has_verified_factor(u.id) THEN 'aal1' ELSE 'session' END
                          WHEN kind = 'recovery_codes' THEN 'second_factor'
                          WHEN act = 'add' AND kind IN ('factor', 'passkey') THEN 'enrol'
                          WHEN act = 'remove' AND kind = 'factor' AND added_at IS NULL THEN 'session'
                          -- Removing a thief's addition does not need the factor that AUTH_MFA_REQUIRED
                          -- requires.
                          WHEN act = 'remove' AND added_at > now() - recent_age() THEN 'enrol'
                          ELSE 'aal2' END, required)
         AND NOT (act = 'remove' AND coalesce(may_take_back(s, added_at), false))
    THEN 'insufficient_aal'
    WHEN kind IN ('metadata', 'grant')
         OR act = 'remove' AND (kind = 'api_key' OR kind = 'factor' AND added_at IS NULL)
    THEN NULL
    WHEN given IN ('begun', 'factor') THEN NULL
    -- The first factor of an administrator opens the console, so a password alone is not enough.
    WHEN act = 'add' AND kind IN ('factor', 'passkey') AND u.role = 'admin' AND NOT has_verified_factor(u.id)
    THEN CASE WHEN given IS DISTINCT FROM 'code'
                   AND (s.code_given_at > now() - fresh_age()) IS NOT TRUE
              THEN 'code.reauthentication_needed' END
    WHEN has_verified_factor(u.id) AND NOT coalesce(may_take_back(s, added_at), false)
    -- A passkey cannot be sent with the change, so it counts for five minutes at least.
    THEN CASE WHEN (proved_at(u, s) > now() - make_interval(secs => greatest(proof_age, 300))) IS NOT TRUE
              THEN 'mfa.reauthentication_needed' END
    WHEN given IS NOT NULL OR kind = 'password' AND is_fresh_recovery(s) THEN NULL
    WHEN kind IN ('password', 'account')
    THEN CASE WHEN authenticated_at(s) <= now() - make_interval(secs => change_age)
              THEN 'reauthentication_needed' END
    WHEN act = 'add' AND kind IN ('email', 'phone', 'identity', 'passkey') AND is_anonymous(u) THEN NULL
    WHEN (proved_at(s) > now() - make_interval(secs => proof_age)) IS NOT TRUE THEN 'reauthentication_needed'
  END
$$;

-- The state of a caller for acts on credentials, each given by its id or its kind. Call it with the user's
-- row locked. It is VOLATILE to see the commits of the lock's previous holder.
CREATE OR REPLACE FUNCTION locked_caller_state(
  user_id uuid, session_id uuid, expires_at bigint, lifetime integer, timebox integer, aal text, level text,
  required text, given text, proof_age integer, change_age integer, acts text[], kinds text[], ids text[]
) RETURNS text
  LANGUAGE sql VOLATILE
AS $$
  SELECT CASE WHEN state = 'live' THEN coalesce(refused.key, state) ELSE state END
    FROM users AS u
    LEFT JOIN sessions AS s ON s.id = locked_caller_state.session_id AND s.user_id = u.id
   CROSS JOIN caller_state(u, s, expires_at, lifetime, timebox, locked_caller_state.aal, level, required)
           AS state
   CROSS JOIN LATERAL (
     -- `insufficient_aal` comes before `reauthentication_needed`.
     SELECT min(refusal_of_act('session', u, s, locked_caller_state.aal, required, given, proof_age,
                               change_age, wanted.act, coalesce(added.kind, wanted.kind), added.added_at))
       FROM unnest(acts, kinds, ids) AS wanted (act, kind, id)
       LEFT JOIN (SELECT a.id, a.added_at,
                         CASE WHEN a.type IN ('totp', 'webauthn') THEN 'factor' ELSE a.type END AS kind
                    FROM additions_to(u.id, '-infinity') AS a
                   WHERE 'remove' = ANY (acts)) AS added
         ON wanted.act = 'remove'
        AND (added.id::text = wanted.id OR wanted.id IS NULL AND added.kind = wanted.kind)
   ) AS refused (key)
   WHERE u.id = locked_caller_state.user_id
$$;
