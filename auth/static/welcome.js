// A link in a message ends at this page when the application has no address of its own. What has become of it is in the
// fragment, which only the browser sees. It is taken out of the address bar at once, since it may hold tokens; and nothing of
// it is shown, since anybody can write such a link.
function tell() {
  const result = new URLSearchParams(location.hash.slice(1));
  if (location.hash) {
    history.replaceState(null, "", location.pathname + location.search);
  }
  const find = (name) => document.getElementById(`outcome-${name}`);
  let text = null;
  if (result.has("access_token")) {
    text = find("signed_in");
  } else if (result.has("error")) {
    text = find(result.get("error_code")) || find("failed");
  } else if (result.has("message")) {
    text = find(result.get("type"));
  }
  if (text) {
    const outcome = document.getElementById("outcome");
    outcome.textContent = text.content.textContent;
    outcome.className = result.has("error") ? "failure" : "success";
    document.title = outcome.textContent;
  }
}

tell();
addEventListener("hashchange", tell);
