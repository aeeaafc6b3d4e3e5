-- name: ping()
-- Whether the database answers.
SELECT 1 AS answer;
