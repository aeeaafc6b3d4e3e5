// The key can be any text. With PKCE the link in a mail returns with a code that only this browser can redeem.
const { auth } = supabase.createClient("http://localhost:8000", "anon", { auth: { flowType: "pkce" } });
const find = (id) => document.getElementById(id);
const here = location.origin + location.pathname; // on AUTH_REDIRECT_ALLOW_LIST

const actions = {
  signIn: (email, password) => auth.signInWithPassword({ email, password }),
  signUp: (email, password) => auth.signUp({ email, password, options: { emailRedirectTo: here } }),
  sendLink: (email) => auth.signInWithOtp({ email, options: { emailRedirectTo: here } }),
};

find("sign-in").addEventListener("submit", async (event) => {
  event.preventDefault();
  const { email, password } = Object.fromEntries(new FormData(event.target));
  const { data, error } = await actions[event.submitter.value](email, password);
  const sent = `We sent a mail to ${email}. Open its link in this browser.`;
  find("message").textContent = error ? error.message : data.session ? "" : sent;
});

find("sign-out").addEventListener("click", () => auth.signOut({ scope: "local" }));

// Also called when the page opens, when the access token is refreshed, and when another tab signs out. Send
// (await auth.getSession()).data.session.access_token to your own API as "Authorization: Bearer …".
auth.onAuthStateChange((event, session) => {
  find("sign-in").hidden = Boolean(session);
  find("account").hidden = !session;
  find("email").textContent = session?.user.email ?? "";
});

// Redeem the code in the URL. It is an error if the link was used before, or has expired.
auth.initialize().then(({ error }) => {
  if (error) find("message").textContent = error.message;
});
