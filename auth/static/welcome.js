// A link in a message ends here when the application has no address of its own: what became of it is in the fragment, which
// only the browser sees. It is taken out of the address bar at once, since it may hold tokens.
const result = new URLSearchParams(location.hash.slice(1));
if (result.size > 0) {
  history.replaceState(null, "", location.pathname);
  const outcome = document.getElementById("outcome");
  if (result.has("access_token")) {
    outcome.textContent = "You are signed in.";
  } else if (result.has("error")) {
    outcome.textContent = result.get("error_description") || "That did not work.";
  }
}
