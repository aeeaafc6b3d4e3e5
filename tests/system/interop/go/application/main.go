// An application that signs its users in by go-oidc and golang.org/x/oauth2, used as their documentation shows.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"log"
	"net/http"
	"net/url"
	"os"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

// What the application knows of one browser.
type session struct {
	state, nonce, verifier, idToken string
	claims                          map[string]any
	token                           *oauth2.Token
}

type application struct {
	config   oauth2.Config
	provider *oidc.Provider
	url      string
	logout   string
	mutex    sync.Mutex
	sessions map[string]*session
}

func main() {
	ctx := context.Background()
	provider, err := oidc.NewProvider(ctx, os.Getenv("LATCHKEY_URL"))
	if err != nil {
		log.Fatal(err)
	}
	var metadata struct {
		Logout string `json:"end_session_endpoint"`
	}
	if err := provider.Claims(&metadata); err != nil {
		log.Fatal(err)
	}
	address := os.Getenv("APPLICATION_URL")
	app := &application{
		config: oauth2.Config{
			ClientID:     os.Getenv("CLIENT_ID"),
			ClientSecret: os.Getenv("CLIENT_SECRET"),
			Endpoint:     provider.Endpoint(),
			RedirectURL:  address + "/callback",
			Scopes:       []string{oidc.ScopeOpenID, oidc.ScopeOfflineAccess, "profile", "email", "groups"},
		},
		provider: provider,
		url:      address,
		logout:   metadata.Logout,
		sessions: map[string]*session{},
	}
	http.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("Signed out")) })
	http.HandleFunc("GET /me", app.answer(app.me))
	http.HandleFunc("GET /callback", app.answer(app.callback))
	http.HandleFunc("GET /refresh", app.answer(app.refresh))
	http.HandleFunc("GET /logout", app.answer(app.signOut))
	parsed, err := url.Parse(address)
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(http.ListenAndServe("127.0.0.1:"+parsed.Port(), nil))
}

// Find the browser's session, and answer with an error as text.
func (a *application) answer(act func(http.ResponseWriter, *http.Request, *session) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		a.mutex.Lock()
		defer a.mutex.Unlock()
		cookie, err := r.Cookie("session")
		if err != nil || a.sessions[cookie.Value] == nil {
			cookie = &http.Cookie{Name: "session", Value: oauth2.GenerateVerifier(), HttpOnly: true, SameSite: http.SameSiteLaxMode}
			a.sessions[cookie.Value] = &session{}
			http.SetCookie(w, cookie)
		}
		if err := act(w, r, a.sessions[cookie.Value]); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
		}
	}
}

func (a *application) me(w http.ResponseWriter, r *http.Request, s *session) error {
	if s.claims != nil {
		return json.NewEncoder(w).Encode(s.claims)
	}
	*s = session{state: oauth2.GenerateVerifier(), nonce: oauth2.GenerateVerifier(), verifier: oauth2.GenerateVerifier()}
	http.Redirect(w, r, a.config.AuthCodeURL(s.state, oidc.Nonce(s.nonce), oauth2.S256ChallengeOption(s.verifier)), http.StatusFound)
	return nil
}

func (a *application) callback(w http.ResponseWriter, r *http.Request, s *session) error {
	query := r.URL.Query()
	if s.state == "" || query.Get("state") != s.state {
		return errors.New("another state")
	}
	// go-oidc does not check `iss` (RFC 9207).
	if query.Get("iss") != os.Getenv("LATCHKEY_URL") {
		return errors.New("another issuer: " + query.Get("iss"))
	}
	if query.Has("error") {
		return errors.New(query.Get("error"))
	}
	token, err := a.config.Exchange(r.Context(), query.Get("code"), oauth2.VerifierOption(s.verifier))
	if err != nil {
		return err
	}
	raw, _ := token.Extra("id_token").(string)
	idToken, err := a.provider.Verifier(&oidc.Config{ClientID: a.config.ClientID}).Verify(r.Context(), raw)
	if err != nil {
		return err
	}
	if idToken.Nonce != s.nonce {
		return errors.New("another nonce")
	}
	if err := idToken.VerifyAccessToken(token.AccessToken); err != nil {
		return err
	}
	// Of an access token, go-oidc does not look at the type.
	if _, err := a.provider.Verifier(&oidc.Config{ClientID: a.config.ClientID}).Verify(r.Context(), token.AccessToken); err == nil {
		return errors.New("an access token passes for an ID token")
	}
	claims := map[string]any{}
	if err := idToken.Claims(&claims); err != nil {
		return err
	}
	*s = session{claims: claims, token: token, idToken: raw}
	http.Redirect(w, r, "/me", http.StatusFound)
	return nil
}

// Refresh as if the access token had expired, and ask for the user's claims with the new one.
func (a *application) refresh(w http.ResponseWriter, r *http.Request, s *session) error {
	if s.token == nil {
		return errors.New("not signed in")
	}
	expired := *s.token
	expired.Expiry = time.Unix(1, 0)
	refreshed, err := a.config.TokenSource(r.Context(), &expired).Token()
	if refusal := (*oauth2.RetrieveError)(nil); errors.As(err, &refusal) {
		return json.NewEncoder(w).Encode(map[string]any{"refused": refusal.ErrorCode})
	}
	if err != nil {
		return err
	}
	info, err := a.provider.UserInfo(r.Context(), oauth2.StaticTokenSource(refreshed))
	if err != nil {
		return err
	}
	var known struct{ Groups []string }
	if err := info.Claims(&known); err != nil {
		return err
	}
	raw, _ := refreshed.Extra("id_token").(string)
	idToken, err := a.provider.Verifier(&oidc.Config{ClientID: a.config.ClientID}).Verify(r.Context(), raw)
	if err != nil {
		return err
	}
	if idToken.Subject != info.Subject {
		return errors.New("another user")
	}
	if err := idToken.VerifyAccessToken(refreshed.AccessToken); err != nil {
		return err
	}
	isNew := refreshed.AccessToken != s.token.AccessToken
	s.token, s.idToken = refreshed, raw
	return json.NewEncoder(w).Encode(map[string]any{"is_new": isNew, "sub": info.Subject, "email": info.Email, "groups": known.Groups})
}

func (a *application) signOut(w http.ResponseWriter, r *http.Request, s *session) error {
	query := url.Values{"id_token_hint": {s.idToken}, "post_logout_redirect_uri": {a.url + "/"}}
	*s = session{}
	http.Redirect(w, r, a.logout+"?"+query.Encode(), http.StatusFound)
	return nil
}
