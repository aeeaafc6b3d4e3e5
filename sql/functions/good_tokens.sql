-- Statements that read for a token return these facts, and auth/rules/tokens.py decides.

-- The facts about a user.
CREATE OR REPLACE FUNCTION user_facts(owner uuid) RETURNS TABLE (
  role text, made_by text, converted_at timestamptz, banned_until timestamptz,
  oldest_factor_at timestamptz, has_second_step boolean, now timestamptz
)
  LANGUAGE sql STABLE PARALLEL SAFE ROWS 1
AS $$
  SELECT u.role, u.made_by, u.converted_at, u.banned_until, verified.oldest, verified.has_second_step, now()
    FROM users AS u
   CROSS JOIN factors_of(u.id) AS verified
   WHERE u.id = owner
$$;

-- The facts about a user and a session; the session's are null if the user has none of this id.
CREATE OR REPLACE FUNCTION caller_facts(owner uuid, session_id uuid) RETURNS TABLE (
  role text, made_by text, converted_at timestamptz, banned_until timestamptz,
  oldest_factor_at timestamptz, has_second_step boolean, now timestamptz,
  method text, aal text, session_created_at timestamptz, refreshed_at timestamptz, ended_at timestamptz,
  first_passkey_at timestamptz
)
  LANGUAGE sql STABLE PARALLEL SAFE ROWS 1
AS $$
  SELECT u.*, s.method, s.aal, s.created_at, s.refreshed_at, end_of(s), s.first_passkey_at
    FROM user_facts(owner) AS u
    LEFT JOIN sessions AS s ON s.id = caller_facts.session_id AND s.user_id = owner
$$;
