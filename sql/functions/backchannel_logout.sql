-- Both triggers find their tables by themselves: pg_restore and careful operators write with an empty search
-- path. Notifies an application with an ID token, for an hour, that its session has ended or is deleted with
-- its user (OpenID Connect Back-Channel Logout 1.0). The logout token is created when it is sent.
CREATE OR REPLACE FUNCTION write_logout() RETURNS trigger
  LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT
AS $$
DECLARE
  s sessions NOT NULL := CASE TG_OP WHEN 'DELETE' THEN OLD ELSE NEW END;
BEGIN
  INSERT INTO outbox (id, user_id, channel, kind, recipient, variables, expires_at)
  SELECT gen_random_uuid(), s.user_id, 'logout', 'application_logout', c.backchannel_logout_uri,
         jsonb_build_object('client_id', c.id, 'user_id', s.user_id, 'session_id', s.id,
                            'algorithm', c.id_token_signed_response_alg),
         now() + interval '1 hour'
    FROM oauth_grants AS g
    JOIN oauth_clients AS c ON c.id = g.client_id
   WHERE g.id = s.grant_id AND c.backchannel_logout_uri <> '' AND 'openid' = ANY (s.scopes)
     AND (TG_OP <> 'DELETE' OR NOT EXISTS (SELECT FROM users AS u WHERE u.id = s.user_id));
  RETURN s;
END
$$;
CREATE OR REPLACE TRIGGER session_has_ended AFTER UPDATE OF ended_at ON sessions
  FOR EACH ROW WHEN (OLD.ended_at IS NULL AND NEW.ended_at IS NOT NULL AND NEW.grant_id IS NOT NULL)
  EXECUTE FUNCTION write_logout();
CREATE OR REPLACE TRIGGER session_goes BEFORE DELETE ON sessions
  FOR EACH ROW WHEN (OLD.ended_at IS NULL AND OLD.grant_id IS NOT NULL) EXECUTE FUNCTION write_logout();

-- Sessions that are deleted with their grant or client end before: afterwards the URL of the application is
-- lost.
CREATE OR REPLACE FUNCTION end_before_deletion() RETURNS trigger
  LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT
AS $$
BEGIN
  UPDATE sessions AS s
     SET ended_at = now(), end_reason = 'access_lost'
    FROM oauth_grants AS g
    JOIN oauth_clients AS c ON c.id = g.client_id
   WHERE OLD.id IN (g.id, g.client_id) AND c.backchannel_logout_uri <> ''
     AND s.grant_id = g.id AND s.ended_at IS NULL;
  RETURN OLD;
END
$$;
CREATE OR REPLACE TRIGGER grant_goes BEFORE DELETE ON oauth_grants
  FOR EACH ROW EXECUTE FUNCTION end_before_deletion();
CREATE OR REPLACE TRIGGER client_goes BEFORE DELETE ON oauth_clients
  FOR EACH ROW WHEN (OLD.backchannel_logout_uri <> '') EXECUTE FUNCTION end_before_deletion();
