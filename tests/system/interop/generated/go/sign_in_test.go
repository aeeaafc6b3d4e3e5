// The client that openapi-generator makes for Go: tests/system/interop/test_generated.py generates it into ./latchkey.
package generated

import (
	"context"
	"crypto/rand"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"latchkey.example/generated/latchkey"
)

const password = "Correct-Horse-1"

var client = newClient()

func newClient() *latchkey.APIClient {
	configuration := latchkey.NewConfiguration()
	configuration.Servers = latchkey.ServerConfigurations{{URL: os.Getenv("LATCHKEY_URL")}}
	return latchkey.NewAPIClient(configuration)
}

func newEmail() string { return strings.ToLower(rand.Text()) + "@example.com" }

// with returns the context of calls with these credentials.
func with(t *testing.T, token string) context.Context {
	return context.WithValue(t.Context(), latchkey.ContextAccessToken, token)
}

// must returns the decoded response, or ends the test with the error and its body.
func must[T any](t *testing.T) func(T, *http.Response, error) T {
	return func(value T, _ *http.Response, err error) T {
		t.Helper()
		if failure, ok := err.(*latchkey.GenericOpenAPIError); ok {
			t.Fatal(failure, string(failure.Body()))
		} else if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

func equal[T comparable](t *testing.T, got, wanted T) {
	t.Helper()
	if got != wanted {
		t.Fatalf("got %v instead of %v", got, wanted)
	}
}

func mailedCode(t *testing.T, email string) string {
	t.Helper()
	call := client.ServiceAPI.ListDevInbox(with(t, os.Getenv("LATCHKEY_SERVICE_KEY"))).Recipient(email)
	for range 300 {
		if messages := must[[]latchkey.DevMessage](t)(call.Execute()); len(messages) > 0 {
			return messages[0].GetCode()
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatalf("no message to %s", email)
	return ""
}

func token(t *testing.T, grantType string, grant *latchkey.TokenGrant) latchkey.ApiTokenRequest {
	return client.SignInAPI.Token(t.Context()).GrantType(grantType).TokenGrant(*grant)
}

func TestUserSignsUpVerifiesLogsInAndRefreshes(t *testing.T) {
	email := newEmail()
	signup := latchkey.NewSignup()
	signup.SetEmail(email)
	signup.SetPassword(password)
	created := must[*latchkey.Signup201Response](t)(client.SignInAPI.Signup(t.Context()).Signup(*signup).Execute()).User
	equal(t, created.GetEmail(), email)
	equal(t, created.EmailConfirmedAt.Get(), nil)

	grant := latchkey.NewTokenGrant()
	grant.SetEmail(email)
	grant.SetPassword(password)
	byPassword := token(t, "password", grant)
	_, response, err := byPassword.Execute()
	equal(t, response.StatusCode, 403)
	refused := err.(*latchkey.GenericOpenAPIError).Model().(latchkey.Token403Response)
	equal(t, refused.ErrorCode, "email_not_confirmed")

	code := latchkey.NewVerification("email")
	code.SetEmail(email)
	code.SetToken(mailedCode(t, email))
	verify := client.SignInAPI.Verify(t.Context()).Verification(*code)
	verified := must[*latchkey.Verify200Response](t)(verify.Execute()).VerifiedSession
	equal(t, verified.User.Id, created.Id)

	signedIn := must[*latchkey.Token200Response](t)(byPassword.Execute()).UserTokens
	byRefreshToken := latchkey.NewTokenGrant()
	byRefreshToken.SetRefreshToken(signedIn.RefreshToken)
	refreshed := must[*latchkey.Token200Response](t)(token(t, "refresh_token", byRefreshToken).Execute()).UserTokens

	session := with(t, refreshed.AccessToken)
	user := must[*latchkey.User](t)(client.UserAPI.GetUser(session).Execute())
	equal(t, user.Id, created.Id)
	equal(t, user.GetEmail(), email)
	equal(t, user.Identities[0].Provider, "email")
	must[*latchkey.Done](t)(client.SessionsAPI.Logout(session).Execute())
}

func TestAnonymousUserIsSignedInAtOnce(t *testing.T) {
	call := client.SignInAPI.Signup(t.Context()).Signup(*latchkey.NewSignup())
	created := must[*latchkey.Signup201Response](t)(call.Execute()).SignedUpUser
	equal(t, created.User.IsAnonymous, true)
}

func TestAdministratorCreatesAUser(t *testing.T) {
	user := latchkey.NewUserCreation(newEmail())
	user.SetRole("editor")
	call := client.AdministrationAPI.CreateUser(with(t, os.Getenv("LATCHKEY_SERVICE_KEY"))).UserCreation(*user)
	equal(t, must[*latchkey.User](t)(call.Execute()).Role, "editor")
}
