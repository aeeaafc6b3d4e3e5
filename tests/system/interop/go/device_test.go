// The device flow of golang.org/x/oauth2, unmodified.
package interop

import (
	"context"
	"encoding/json"
	"errors"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

const deviceGrant = "urn:ietf:params:oauth:grant-type:device_code"

var (
	formToken = regexp.MustCompile(`name="form_token" value="([0-9a-f]+)"`)
	requestID = regexp.MustCompile(`name="request" value="([0-9a-f-]+)"`)
)

// browser is one without JavaScript.
type browser struct {
	http *http.Client
	page string
}

func (b *browser) read(t *testing.T, response *http.Response, err error) {
	t.Helper()
	check(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	check(t, err)
	b.page = html.UnescapeString(string(body))
}

func (b *browser) visit(t *testing.T, address string) {
	t.Helper()
	response, err := b.http.Get(address)
	b.read(t, response, err)
}

func (b *browser) press(t *testing.T, path string, fields url.Values) {
	t.Helper()
	found := formToken.FindStringSubmatch(b.page)
	if found == nil {
		t.Fatalf("no form: %s", b.page)
	}
	fields.Set("form_token", found[1])
	request, err := http.NewRequest("POST", service+path, strings.NewReader(fields.Encode()))
	check(t, err)
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Accept", "text/html")
	response, err := b.http.Do(request)
	b.read(t, response, err)
}

// television is a public client with the device grant, configured by what the service says of itself.
func television(t *testing.T) (*oidc.Provider, *oauth2.Config) {
	t.Helper()
	body := `{"client_name": "Television", "client_type": "public", "grant_types": ["refresh_token", "` + deviceGrant + `"]}`
	request, err := http.NewRequest("POST", service+"/admin/oauth/clients", strings.NewReader(body))
	check(t, err)
	request.Header.Set("Authorization", "Bearer "+serviceKey)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	check(t, err)
	defer response.Body.Close()
	var made struct {
		ID string `json:"client_id"`
	}
	check(t, json.NewDecoder(response.Body).Decode(&made))
	provider := must[*oidc.Provider](t)(oidc.NewProvider(context.Background(), service))
	return provider, &oauth2.Config{
		ClientID: made.ID, Endpoint: provider.Endpoint(), Scopes: []string{oidc.ScopeOpenID, "email"}}
}

// decide has a new user sign in, type the code and press a button.
func decide(t *testing.T, codes *oauth2.DeviceAuthResponse, action string) string {
	t.Helper()
	email, _ := signedIn(t)
	jar, _ := cookiejar.New(nil)
	b := &browser{http: &http.Client{Jar: jar}}
	b.visit(t, codes.VerificationURIComplete)
	b.press(t, "/sign-in", url.Values{"email": {email}, "password": {password}, "next": {"device"}})
	b.press(t, "/device", url.Values{"user_code": {strings.ToLower(codes.UserCode)}})
	found := requestID.FindStringSubmatch(b.page)
	if found == nil {
		t.Fatalf("not asked: %s", b.page)
	}
	b.press(t, "/device/consent", url.Values{"request": {found[1]}, "action": {action}})
	return email
}

func TestDeviceWaitsAndGetsTheTokensOfItsUser(t *testing.T) {
	ctx := context.Background()
	provider, config := television(t)
	codes := must[*oauth2.DeviceAuthResponse](t)(config.DeviceAuth(ctx))
	equal(t, codes.Interval, int64(5))
	email := ""
	// The library asks for the first time after the interval.
	token := must[*oauth2.Token](t)(func() (*oauth2.Token, error) {
		decided := make(chan string, 1)
		go func() { decided <- decide(t, codes, "approve") }()
		token, err := config.DeviceAccessToken(ctx, codes)
		email = <-decided
		return token, err
	}())
	verifier := provider.Verifier(&oidc.Config{ClientID: config.ClientID})
	idToken := must[*oidc.IDToken](t)(verifier.Verify(ctx, token.Extra("id_token").(string)))
	var claims struct{ Email, Sid string }
	check(t, idToken.Claims(&claims))
	equal(t, claims.Email, email)
	equal(t, claims.Sid != "", true)
	renewed := must[*oauth2.Token](t)(config.TokenSource(ctx, &oauth2.Token{RefreshToken: token.RefreshToken}).Token())
	info := must[*oidc.UserInfo](t)(provider.UserInfo(ctx, oauth2.StaticTokenSource(renewed)))
	equal(t, info.Subject, idToken.Subject)
}

func TestDeniedDeviceIsToldSo(t *testing.T) {
	ctx := context.Background()
	_, config := television(t)
	codes := must[*oauth2.DeviceAuthResponse](t)(config.DeviceAuth(ctx))
	decide(t, codes, "deny")
	_, err := config.DeviceAccessToken(ctx, codes)
	var refused *oauth2.RetrieveError
	if !errors.As(err, &refused) {
		t.Fatal(err)
	}
	equal(t, refused.ErrorCode, "access_denied")
}
