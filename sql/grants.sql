-- The rights of the role of requests. sql/schema.py grants them as the owner of the tables.
REVOKE CREATE ON SCHEMA {schema} FROM PUBLIC, {role};
GRANT USAGE ON SCHEMA {schema} TO {role};
GRANT SELECT, INSERT, UPDATE, DELETE ON {tables} TO {role};
REVOKE INSERT, UPDATE, DELETE ON audit_log, schema_version FROM {role};
GRANT EXECUTE ON FUNCTION {functions} TO {role};
