-- Decides who may add, change or remove credentials of a user: the table "Who may change what" of
-- docs/security.md, which tests/web/test_proofs_of_acts.py compares with `refusal_of_act`.

-- How long an addition is recent, so that a thief may have made it: see `additions_to` and `asked_factors`.
CREATE OR REPLACE FUNCTION recent_age() RETURNS interval
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$ SELECT interval '7 days' $$;
