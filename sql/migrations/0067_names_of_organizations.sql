-- Usable from 0061
-- Organizations are not written meanwhile: 0.7 s for 100,000 of them.
CREATE INDEX organizations_names ON organizations USING gin (
  to_tsvector('simple', translate(name, '@._+-/’', '       '))) WITH (fastupdate = off);
