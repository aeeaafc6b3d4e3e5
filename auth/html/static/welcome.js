// Links in messages redirect to this page if the application has no URL of its own. The fragment carries the outcome.
// Remove it from the address bar at once, because it may contain tokens, and never display it, because attackers can
// craft such a link.
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
    outcome.replaceChildren(text.content.cloneNode(true));
    outcome.className = result.has("error") ? "failure" : "success";
    document.title = outcome.textContent;
  }
}

tell();
addEventListener("hashchange", tell);
