-- name: keep_typed_address(browser_hash bytea, address text, has_asked boolean, lifetime integer) -> row
INSERT INTO typed_addresses (browser_hash, address, has_asked, expires_at)
VALUES (:browser_hash, :address, :has_asked, now() + make_interval(secs => :lifetime))
RETURNING id;

-- name: select_typed_address(id uuid, browser_hash bytea) -> row?
SELECT id, address, has_asked
  FROM typed_addresses
 WHERE id = :id AND browser_hash = :browser_hash AND expires_at > now();

-- name: select_used_link(browser_hash bytea, target text, purpose text) -> row?
-- The user of a link or code that this browser requested, once it is used in any browser.
SELECT t.user_id
  FROM one_time_tokens AS t
 WHERE t.browser_hash = :browser_hash AND t.target = :target AND t.purpose = :purpose
   AND t.spent_at IS NOT NULL AND t.expires_at > now()
 LIMIT 1;

-- name: select_newest_code(target text, browser_hash bytea) -> row?
SELECT code_mac
  FROM (SELECT * FROM one_time_tokens
         WHERE target = :target AND code_mac IS NOT NULL
           AND (browser_hash IS NULL OR browser_hash = :browser_hash)
         ORDER BY created_at DESC
         LIMIT 1) AS newest
 WHERE spent_at IS NULL AND code_expires_at > now();
