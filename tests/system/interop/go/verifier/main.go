// Reads tokens by name, and writes which of them go-oidc accepts for an audience, and for a nonce if there is one.
package main

import (
	"context"
	"encoding/json"
	"log"
	"os"

	"github.com/coreos/go-oidc/v3/oidc"
)

func main() {
	ctx := context.Background()
	issuer, audience, nonce := os.Args[1], os.Args[2], os.Args[3]
	provider, err := oidc.NewProvider(ctx, issuer)
	if err != nil {
		log.Fatal(err)
	}
	var tokens map[string]string
	if err := json.NewDecoder(os.Stdin).Decode(&tokens); err != nil {
		log.Fatal(err)
	}
	// ES256 signs the tokens of sessions.
	verifier := provider.Verifier(&oidc.Config{ClientID: audience, SupportedSigningAlgs: []string{oidc.RS256, oidc.ES256}})
	accepted := []string{}
	for name, raw := range tokens {
		token, err := verifier.Verify(ctx, raw)
		if err == nil && (nonce == "" || token.Nonce == nonce) {
			accepted = append(accepted, name)
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(accepted); err != nil {
		log.Fatal(err)
	}
}
