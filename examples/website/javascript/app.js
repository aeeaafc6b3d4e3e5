const LATCHKEY = "http://localhost:8000"; // AUTH_BASE_URL
const HERE = location.origin + location.pathname; // AUTH_SITE_URL, or on AUTH_REDIRECT_ALLOW_LIST
const find = (id) => document.getElementById(id);

// Trade a code or a refresh token for tokens. Return false if Latchkey refuses.
async function trade(grantType, proof) {
  const headers = { "Content-Type": "application/json" };
  const sent = { method: "POST", headers, body: JSON.stringify(proof) };
  const response = await fetch(`${LATCHKEY}/token?grant_type=${grantType}`, sent);
  if ([400, 403, 404].includes(response.status)) return false;
  if (!response.ok) throw new Error(`Latchkey answers ${response.status}`);
  // Any script on this origin can read it: load none of others, and forbid them by a Content-Security-Policy.
  localStorage.setItem("session", await response.text());
  return true;
}

// Return the tokens and the user, or null. Send access_token to your own API as "Authorization: Bearer …".
async function current() {
  const session = JSON.parse(localStorage.getItem("session"));
  if (!session || session.expires_at > Date.now() / 1000 + 60) return session;
  // Two tabs may send the same refresh token: within a minute, it returns the same tokens.
  const isLive = await trade("refresh_token", { refresh_token: session.refresh_token });
  if (!isLive) localStorage.removeItem("session");
  return JSON.parse(localStorage.getItem("session"));
}

function base64url(bytes) {
  const text = btoa(String.fromCharCode(...new Uint8Array(bytes)));
  return text.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

async function leave(page) {
  const verifier = base64url(crypto.getRandomValues(new Uint8Array(32)));
  // Not in sessionStorage: the link of a mail opens a new tab.
  localStorage.setItem("verifier", verifier);
  const challenge = base64url(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(verifier)));
  const query = new URLSearchParams({ redirect_to: HERE, code_challenge: challenge });
  location.assign(`${LATCHKEY}/${page}?${query}`);
}

async function arrive() {
  const code = new URLSearchParams(location.search).get("code");
  const verifier = localStorage.getItem("verifier");
  if (!code) return;
  history.replaceState(null, "", HERE);
  localStorage.removeItem("verifier");
  // A code from anywhere else does not fit the verifier of this browser.
  if (verifier) await trade("pkce", { auth_code: code, code_verifier: verifier });
}

async function signOut() {
  const session = await current();
  localStorage.removeItem("session");
  if (session) {
    const headers = { Authorization: `Bearer ${session.access_token}` };
    await fetch(`${LATCHKEY}/logout?scope=local`, { method: "POST", headers });
  }
  location.assign(`${LATCHKEY}/sign-out?${new URLSearchParams({ redirect_to: HERE })}`);
}

// Users also arrive without a code: those who opened the link of a mail in another browser than the one that
// asked for it. Latchkey has signed them in there, and its page then offers to continue.
async function show() {
  await arrive();
  const session = await current();
  find("signed-in").hidden = !session;
  find("signed-out").hidden = Boolean(session);
  find("user").textContent = session?.user.email || session?.user.phone;
}

const tell = (error) => (find("message").textContent = `Please try again in a minute. (${error.message})`);
find("account").href = `${LATCHKEY}/account`;
find("sign-out").addEventListener("click", () => signOut().catch(tell));
find("signed-out").addEventListener("click", ({ target }) => target.value && leave(target.value).catch(tell));
show().catch(tell);
