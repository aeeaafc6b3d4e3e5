-- A request of a running node that signs a user in holds a lock on users. Waiting for sessions alone, it
-- would fail: its open_session has looked up the columns.
LOCK TABLE users IN SHARE ROW EXCLUSIVE MODE;
ALTER TABLE sessions ADD COLUMN identity_id uuid, ADD COLUMN code_given_at timestamptz;
