ALTER TABLE failure_counts
  ADD COLUMN kind text,
  ADD COLUMN subject text,
  ADD COLUMN network text,
  ADD COLUMN seconds integer;
CREATE INDEX failure_counts_subject ON failure_counts (subject);
CREATE TYPE failure_limit AS (
  kind     text,
  subject  text,
  network  text,
  amount   integer,
  seconds  integer
);
-- Users without a second step had passed every step wherever they had signed in.
UPDATE known_networks AS n
   SET passed_at = seen_at
 WHERE passed_at IS NULL
   AND NOT EXISTS (SELECT FROM factors AS f
                    WHERE f.user_id = n.user_id AND f.verified_at IS NOT NULL AND f.factor_type <> 'passkey');
