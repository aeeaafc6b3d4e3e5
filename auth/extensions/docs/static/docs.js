// Progressive enhancement: the documentation works without it.
const make = (name, properties, ...children) => {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
};
const main = document.querySelector("main");

for (const pre of navigator.clipboard ? document.querySelectorAll("pre") : []) {
  const code = pre.textContent;
  const copy = make("button", { type: "button", className: "copy", textContent: "Copy" });
  copy.addEventListener("click", async () => {
    copy.textContent = await navigator.clipboard.writeText(code).then(() => "Copied", () => "Not allowed");
  });
  pre.append(copy);
}

// On a phone, the text comes first.
document.querySelector(".here")?.toggleAttribute("open", matchMedia("(min-width: 900px)").matches);

const nav = document.querySelector("#contents");
nav.scrollTop = (nav.querySelector("[aria-current]")?.offsetTop ?? 0) - nav.clientHeight / 2;

addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input, textarea")) return;
  event.preventDefault();
  document.querySelector("#search").select();
});

// Trying requests, on the machine of a developer. The token stays in this tab, and is shared by all operations.
let token = "";
for (const article of "try" in main.dataset ? document.querySelectorAll("article[data-method]") : []) {
  const button = make("button", { type: "button", className: "other", textContent: "Try it" });
  button.addEventListener("click", () => {
    const form = formOf(article);
    button.replaceWith(form);
    form.elements.target.focus();
  });
  article.querySelector(".curl").after(button);
}

function formOf(article) {
  const { id } = article;
  const { method, target, body, type } = article.dataset;
  const field = (name, text, element) => {
    Object.assign(element, { id: `${id}-${name}`, name, spellcheck: false, autocomplete: "off" });
    return make("div", { className: "field" }, make("label", { htmlFor: element.id, textContent: text }), element);
  };
  const fields = [field("target", "Path and query", make("input", { value: target, required: true, pattern: "/.*" }))];
  fields.push(field("token", "Token (access token or service role key)", make("input", { type: "password", value: token })));
  if (type) fields.push(field("body", `Body (${type})`, make("textarea", { value: body, rows: Math.min(16, body.split("\n").length + 1) })));
  const result = make("div", { role: "status" });
  const form = make("form", { className: "try" }, ...fields, make("button", { textContent: `Send ${method}` }), result);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    token = form.elements.token.value.trim();
    const headers = {};
    if (token) headers.Authorization = `Bearer ${token}`;
    if (type) headers["Content-Type"] = type;
    result.textContent = "Waiting for the response …";
    try {
      // Without cookies, as a program: what a browser's session may do is not what the API's callers may.
      const response = await fetch(new URL(`..${form.elements.target.value}`, location), {
        method, headers, body: type ? form.elements.body.value : undefined, credentials: "omit", redirect: "manual",
      });
      const text = await response.text();
      result.replaceChildren(...shown(response, text));
      const answer = JSON.parse(text || "null");
      if (answer?.access_token) token = answer.access_token;
    } catch (error) {
      if (!(error instanceof SyntaxError)) result.textContent = "No response. Is the service running?";
    }
  });
  return form;
}

function shown(response, text) {
  if (response.type === "opaqueredirect") return ["A redirect, which browsers don’t show to scripts."];
  let readable = text;
  try {
    readable = JSON.stringify(JSON.parse(text), null, 2);
  } catch { /* Not JSON: shown as it is. */ }
  const line = make("p", { textContent: `Status ${response.status}` });
  return readable ? [line, make("pre", { tabIndex: 0, textContent: readable })] : [line];
}
