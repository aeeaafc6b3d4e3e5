-- Usable from 0061
-- See oauth_grants in schema.sql. A grant from before is for all URIs that its client has now: 5 s for a million grants.
-- Users of a client that skips the consent have seen no page.
ALTER TABLE oauth_grants ADD redirect_uris text[];
UPDATE oauth_grants AS g SET redirect_uris = c.redirect_uris FROM oauth_clients AS c
 WHERE c.id = g.client_id AND NOT c.skip_consent;
ALTER TABLE oauth_requests ADD client_redirect_uris text[];
