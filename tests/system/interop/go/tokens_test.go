package interop

import (
	"context"
	"testing"

	"github.com/MicahParks/keyfunc/v3"
	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/golang-jwt/jwt/v5"
)

// The two settings of a service that accepts access tokens
var settings = []struct {
	issuer, audience string
	right            bool
}{
	{service, "authenticated", true},
	{service, "another", false},
	{"https://another.example.com", "authenticated", false},
}

func TestTokenIsVerifiedByGoOIDC(t *testing.T) {
	_, session := signedIn(t)
	keys := oidc.NewRemoteKeySet(context.Background(), service+"/.well-known/jwks.json")
	for _, with := range settings {
		verifier := oidc.NewVerifier(with.issuer, keys,
			&oidc.Config{ClientID: with.audience, SupportedSigningAlgs: []string{oidc.ES256}})
		token, err := verifier.Verify(context.Background(), session.AccessToken)
		if (err == nil) != with.right {
			t.Fatalf("%+v: %v", with, err)
		}
		if with.right {
			equal(t, token.Subject, session.User.ID.String())
		}
	}
}

func TestTokenIsVerifiedByGolangJWT(t *testing.T) {
	_, session := signedIn(t)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	keys := must[keyfunc.Keyfunc](t)(keyfunc.NewDefaultCtx(ctx, []string{service + "/.well-known/jwks.json"}))
	for _, with := range settings {
		var claims jwt.RegisteredClaims
		_, err := jwt.ParseWithClaims(session.AccessToken, &claims, keys.Keyfunc, jwt.WithIssuer(with.issuer),
			jwt.WithAudience(with.audience), jwt.WithValidMethods([]string{"ES256"}), jwt.WithExpirationRequired())
		if (err == nil) != with.right {
			t.Fatalf("%+v: %v", with, err)
		}
		if with.right {
			equal(t, claims.Subject, session.User.ID.String())
		}
	}
}
