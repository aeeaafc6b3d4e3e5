module latchkey.example/interop

go 1.25.0

require (
	github.com/MicahParks/keyfunc/v3 v3.9.1
	github.com/coreos/go-oidc/v3 v3.21.0
	github.com/golang-jwt/jwt/v5 v5.3.1
	github.com/google/uuid v1.3.0
	github.com/supabase-community/gotrue-go v1.2.0
	golang.org/x/oauth2 v0.36.0
)

require (
	github.com/MicahParks/jwkset v0.11.4 // indirect
	github.com/go-jose/go-jose/v4 v4.1.4 // indirect
	github.com/tomnomnom/linkheader v0.0.0-20180905144013-02ca5825eb80 // indirect
	golang.org/x/time v0.15.0 // indirect
)
