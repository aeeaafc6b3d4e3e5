-- Usable from 0061
-- See organizations in schema.sql. Nodes of 0.7.x ignore this requirement.
ALTER TABLE organizations ADD max_age interval
  CONSTRAINT organizations_max_age_check CHECK (max_age BETWEEN '15 minutes' AND '365 days');
