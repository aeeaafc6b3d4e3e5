// The list of calls of gotrue-go, unmodified, against the service that tests/system/interop/test_clients.py starts.
package interop

import (
	"crypto/hmac"
	"crypto/sha1"
	"encoding/base32"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/supabase-community/gotrue-go"
	"github.com/supabase-community/gotrue-go/types"
)

const password = "Correct-Horse-1"

var (
	service    = os.Getenv("LATCHKEY_URL")
	serviceKey = os.Getenv("LATCHKEY_SERVICE_KEY")
	client     = gotrue.New("ignored", "an-anon-key-that-is-ignored").WithCustomGoTrueURL(service + "/auth/v1")
	admin      = client.WithToken(serviceKey)
)

func newEmail() string { return uuid.NewString() + "@example.com" }

// must returns a value, or ends the test with its error.
func must[T any](t *testing.T) func(T, error) T {
	return func(value T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func equal[T comparable](t *testing.T, got, wanted T) {
	t.Helper()
	if got != wanted {
		t.Fatalf("got %v instead of %v", got, wanted)
	}
}

type message struct{ Code, Link string }

// newest returns the newest message to an address, as soon as it has been sent.
func newest(t *testing.T, to string) message {
	t.Helper()
	for range 300 {
		request, _ := http.NewRequest("GET", service+"/dev/inbox?recipient="+url.QueryEscape(to), nil)
		request.Header.Set("Authorization", "Bearer "+serviceKey)
		response, err := http.DefaultClient.Do(request)
		check(t, err)
		var messages []message
		check(t, json.NewDecoder(response.Body).Decode(&messages))
		response.Body.Close()
		if len(messages) > 0 {
			return messages[0]
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatalf("no message to %s", to)
	return message{}
}

// signedIn returns a confirmed user with a session.
func signedIn(t *testing.T) (string, *types.TokenResponse) {
	t.Helper()
	email, secret := newEmail(), password
	must[*types.AdminCreateUserResponse](t)(admin.AdminCreateUser(
		types.AdminCreateUserRequest{Email: email, Password: &secret, EmailConfirm: true}))
	return email, must[*types.TokenResponse](t)(client.SignInWithEmailPassword(email, password))
}

// verified sends a code. The client takes every response but a redirect for an error, with the body in it.
func verified(t *testing.T, request types.VerifyForUserRequest) types.Session {
	t.Helper()
	request.RedirectTo = service
	_, err := client.VerifyForUser(request)
	text, ok := strings.CutPrefix(fmt.Sprint(err), "response status code 200: ")
	if !ok {
		t.Fatal(err)
	}
	var session types.Session
	check(t, json.Unmarshal([]byte(text), &session))
	return session
}

func TestSignUpIsConfirmedByACode(t *testing.T) {
	email := newEmail()
	made := must[*types.SignupResponse](t)(client.Signup(types.SignupRequest{
		Email: email, Password: password, Data: map[string]any{"name": "A"}}))
	equal(t, made.Email, email)
	equal(t, made.UserMetadata["name"], any("A"))
	if _, err := client.SignInWithEmailPassword(email, password); err == nil {
		t.Fatal("signed in without a confirmation")
	}
	session := verified(t, types.VerifyForUserRequest{
		Type: types.VerificationTypeSignup, Email: email, Token: newest(t, email).Code})
	equal(t, session.User.ID, made.ID)
	equal(t, must[*types.UserResponse](t)(client.WithToken(session.AccessToken).GetUser()).Email, email)
	must[*types.TokenResponse](t)(client.SignInWithEmailPassword(email, password))
}

func TestSignUpByPhoneIsConfirmedByACode(t *testing.T) {
	phone := fmt.Sprintf("49170%08d", time.Now().UnixNano()%100_000_000)
	must[*types.SignupResponse](t)(client.Signup(types.SignupRequest{Phone: phone, Password: password}))
	verified(t, types.VerifyForUserRequest{
		Type: types.VerificationTypeSMS, Phone: phone, Token: newest(t, "+"+phone).Code})
	session := must[*types.TokenResponse](t)(client.SignInWithPhonePassword(phone, password))
	equal(t, session.User.Phone, phone)
}

func TestRefreshAndLogout(t *testing.T) {
	_, session := signedIn(t)
	renewed := must[*types.TokenResponse](t)(client.RefreshToken(session.RefreshToken))
	equal(t, renewed.User.ID, session.User.ID)
	check(t, client.WithToken(renewed.AccessToken).Logout())
	if _, err := client.RefreshToken(renewed.RefreshToken); err == nil {
		t.Fatal("refreshed after the sign-out")
	}
}

func TestUserIsUpdated(t *testing.T) {
	_, session := signedIn(t)
	changed := must[*types.UpdateUserResponse](t)(client.WithToken(session.AccessToken).UpdateUser(
		types.UpdateUserRequest{Data: map[string]any{"name": "B"}}))
	equal(t, changed.UserMetadata["name"], any("B"))
}

func TestOneTimeCodes(t *testing.T) {
	email, _ := signedIn(t)
	check(t, client.OTP(types.OTPRequest{Email: email, CreateUser: true}))
	session := verified(t, types.VerifyForUserRequest{
		Type: types.VerificationTypeMagiclink, Email: email, Token: newest(t, email).Code})
	equal(t, session.User.Email, email)
}

func TestMagicLink(t *testing.T) {
	email, _ := signedIn(t)
	check(t, client.Magiclink(types.MagiclinkRequest{Email: email}))
	if newest(t, email).Link == "" {
		t.Fatal("no link")
	}
}

func TestRecovery(t *testing.T) {
	email, _ := signedIn(t)
	check(t, client.Recover(types.RecoverRequest{Email: email}))
	session := verified(t, types.VerifyForUserRequest{
		Type: types.VerificationTypeRecovery, Email: email, Token: newest(t, email).Code})
	other := "Another-Horse-1"
	must[*types.UpdateUserResponse](t)(client.WithToken(session.AccessToken).UpdateUser(
		types.UpdateUserRequest{Password: &other}))
	must[*types.TokenResponse](t)(client.SignInWithEmailPassword(email, other))
}

func TestReauthentication(t *testing.T) {
	email, session := signedIn(t)
	check(t, client.WithToken(session.AccessToken).Reauthenticate())
	if newest(t, email).Code == "" {
		t.Fatal("no code")
	}
}

// codeOf is RFC 6238.
func codeOf(t *testing.T, secret string) string {
	t.Helper()
	key := must[[]byte](t)(base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(secret))
	mac := hmac.New(sha1.New, key)
	check(t, binary.Write(mac, binary.BigEndian, time.Now().Unix()/30))
	sum := mac.Sum(nil)
	offset := sum[len(sum)-1] & 15
	return fmt.Sprintf("%06d", binary.BigEndian.Uint32(sum[offset:])&0x7fffffff%1_000_000)
}

func TestFactorsAreEnrolledVerifiedAndRemoved(t *testing.T) {
	_, session := signedIn(t)
	user := client.WithToken(session.AccessToken)
	factor := must[*types.EnrollFactorResponse](t)(user.EnrollFactor(
		types.EnrollFactorRequest{FactorType: types.FactorTypeTOTP, FriendlyName: "phone", Issuer: "example"}))
	// The client reads `expires_at`, a number, as a text.
	var challenge struct{ ID uuid.UUID }
	post(t, fmt.Sprintf("/factors/%s/challenge", factor.ID), session.AccessToken, &challenge)
	raised := must[*types.VerifyFactorResponse](t)(user.VerifyFactor(types.VerifyFactorRequest{
		FactorID: factor.ID, ChallengeID: challenge.ID, Code: codeOf(t, factor.TOTP.Secret)}))
	equal(t, raised.User.Factors[0].Status, "verified")
	listed := must[*types.AdminListUserFactorsResponse](t)(admin.AdminListUserFactors(
		types.AdminListUserFactorsRequest{UserID: session.User.ID}))
	equal(t, listed.Factors[0].ID, factor.ID)
	removed := must[*types.UnenrollFactorResponse](t)(client.WithToken(raised.AccessToken).UnenrollFactor(
		types.UnenrollFactorRequest{FactorID: factor.ID}))
	equal(t, removed.ID, factor.ID)
}

func post(t *testing.T, path, token string, answer any) {
	t.Helper()
	request, _ := http.NewRequest("POST", service+"/auth/v1"+path, strings.NewReader("{}"))
	request.Header = http.Header{"Authorization": {"Bearer " + token}, "Content-Type": {"application/json"}}
	response, err := http.DefaultClient.Do(request)
	check(t, err)
	defer response.Body.Close()
	equal(t, response.StatusCode, 200)
	check(t, json.NewDecoder(response.Body).Decode(answer))
}

func TestAnonymousUser(t *testing.T) {
	made := must[*types.SignupResponse](t)(client.Signup(types.SignupRequest{}))
	equal(t, made.Email, "")
	if made.AccessToken == "" {
		t.Fatal("no session")
	}
}

func TestUsersAreAdministered(t *testing.T) {
	email := newEmail()
	made := must[*types.AdminCreateUserResponse](t)(admin.AdminCreateUser(
		types.AdminCreateUserRequest{Email: email, UserMetadata: map[string]any{"name": "A"}}))
	id := made.ID
	equal(t, must[*types.AdminGetUserResponse](t)(
		admin.AdminGetUser(types.AdminGetUserRequest{UserID: id})).Email, email)
	changed := must[*types.AdminUpdateUserResponse](t)(admin.AdminUpdateUser(types.AdminUpdateUserRequest{
		UserID: id, AppMetadata: map[string]any{"plan": "pro"}, BanDuration: banFor(time.Hour)}))
	equal(t, changed.AppMetadata["plan"], any("pro"))
	found := false
	for _, user := range must[*types.AdminListUsersResponse](t)(admin.AdminListUsers()).Users {
		found = found || user.ID == id
	}
	equal(t, found, true)
	check(t, admin.AdminDeleteUser(types.AdminDeleteUserRequest{UserID: id}))
	if _, err := admin.AdminGetUser(types.AdminGetUserRequest{UserID: id}); err == nil {
		t.Fatal("the user is still there")
	}
}

func banFor(duration time.Duration) *types.BanDuration {
	ban := types.BanDurationTime(duration)
	return &ban
}

func TestInvitationAndLink(t *testing.T) {
	email := newEmail()
	equal(t, must[*types.InviteResponse](t)(admin.Invite(types.InviteRequest{Email: email})).Email, email)
	link := must[*types.AdminGenerateLinkResponse](t)(admin.AdminGenerateLink(types.AdminGenerateLinkRequest{
		Type: types.LinkTypeMagicLink, Email: email, RedirectTo: service}))
	equal(t, link.Email, email)
	if link.ActionLink == "" || link.EmailOTP == "" || link.HashedToken == "" {
		t.Fatalf("not complete: %+v", link)
	}
}

func TestAuditLog(t *testing.T) {
	logs := must[*types.AdminAuditResponse](t)(admin.AdminAudit(types.AdminAuditRequest{})).Logs
	if len(logs) == 0 || logs[0].Payload["action"] == nil {
		t.Fatal("no entries")
	}
}

func TestSettings(t *testing.T) {
	settings := must[*types.SettingsResponse](t)(client.GetSettings())
	equal(t, settings.External.Email, true)
	equal(t, settings.External.Google, false)
	equal(t, settings.DisableSignup, false)
}

func TestHealth(t *testing.T) {
	health := must[*types.HealthCheckResponse](t)(client.HealthCheck())
	equal(t, health.Name, "Latchkey")
}
