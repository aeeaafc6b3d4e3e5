// Progressive enhancement: the pages work without it.
for (const form of document.forms) {
  let sentAt = -Infinity;
  form.addEventListener("submit", (event) => {
    if (form.dataset.passkey) return;
    // A second click would be refused: the first spent the code or renewed the cookie.
    if (event.timeStamp < sentAt + 5000) return event.preventDefault();
    sentAt = event.timeStamp;
    const button = event.submitter;
    if (!button) return;
    button.style.width = `${button.offsetWidth}px`;
    button.setAttribute("aria-busy", "true");
    if (button.dataset.busy) button.textContent = button.dataset.busy;
  });
}

for (const field of document.querySelectorAll("[data-show]")) {
  const button = document.createElement("button");
  const label = () => { button.textContent = field.type === "password" ? field.dataset.show : field.dataset.hide; };
  button.type = "button";
  button.ariaDescription = field.labels[0].textContent;
  button.addEventListener("click", () => {
    field.type = field.type === "password" ? "text" : "password";
    label();
  });
  label();
  field.after(button);
  field.parentElement.classList.add("reveal");
}

// A code of six digits submits itself, once.
for (const field of document.querySelectorAll(".code")) {
  field.addEventListener("input", () => {
    const digits = field.value.replace(/\D/g, "");
    if (digits.length === 6 && /^[\d\s-]*$/.test(field.value)) {
      field.value = digits;
      field.form.requestSubmit();
    }
  });
}

// Wait for the link to be used. The page explains the result when it is loaded again.
for (const form of document.querySelectorAll("[data-waiting]")) {
  let pause = 3000;
  let isLeft = false;
  let wasAnswered = false;
  addEventListener("submit", () => { isLeft = true; });
  const ask = async () => {
    if (document.hidden) return document.addEventListener("visibilitychange", ask, { once: true });
    const body = new URLSearchParams(new FormData(form));
    const response = await fetch(form.dataset.waiting, { method: "POST", body }).catch(() => null);
    const { is_used: isUsed, is_old: isToldOld } = response?.ok ? await response.json() : {};
    // Another window signed in, so this form is stale. Browsers without Sec-Fetch-Site get a 403.
    const isOld = isToldOld || response?.status === 403;
    if (isLeft) return;
    if (isUsed || (isOld && wasAnswered)) return location.reload();
    if (isOld || response?.status === 401) return;
    wasAnswered ||= response?.ok;
    pause = response?.ok ? Math.min(pause * 1.1, 20000) : 20000;
    // A link works for an hour.
    if (performance.now() < 3600000) setTimeout(ask, pause);
  };
  ask();
}

// Another tab may have answered the question of this page, which then says so.
for (const form of document.querySelectorAll("[data-once]")) {
  let isLeft = false;
  form.addEventListener("submit", () => { isLeft = true; });
  document.addEventListener("visibilitychange", () => { if (!document.hidden && !isLeft) location.reload(); });
}

// The browser restores a page with a busy button when the user comes back.
addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });

// Passkeys: the credential goes into the form. A browser without them hides the form.
const challengeOf = async (form) => {
  if (form.dataset.options) return JSON.parse(form.dataset.options);
  const response = await fetch(form.dataset.challenge, {
    method: "POST", headers: { "Content-Type": "application/json" }, body: "{}",
  });
  if (!response.ok) throw new Error(response.statusText);
  const challenge = await response.json();
  form.elements.challenge_id.value = challenge.challenge_id;
  return challenge.options;
};

const send = (form, credential) => {
  form.elements.credential.value = JSON.stringify(credential.toJSON());
  form.submit();
};

// Show an error below the button or field that it is about.
const showError = (parent, textContent, before = null) => Object.assign(
  parent.querySelector(".wrong") ?? parent.insertBefore(document.createElement("p"), before),
  { className: "wrong", id: "problem", role: "alert", textContent },
);

// Tell the providers of the browser's passkeys which ones the account has, and its name.
for (const { dataset } of document.querySelectorAll("[data-signals]")) {
  for (const [method, options] of Object.entries(JSON.parse(dataset.signals))) {
    window.PublicKeyCredential?.[method]?.(options).catch(() => {});
  }
}

// Let the email field offer passkeys until the form's button asks for one.
const offered = new Map();
const offer = async (form) => {
  if (!await PublicKeyCredential.isConditionalMediationAvailable?.()) return;
  const controller = new AbortController();
  offered.set(form, controller);
  try {
    const options = await challengeOf(form);
    const renew = () => {
      if (controller.signal.aborted) return;
      if (document.hidden) return document.addEventListener("visibilitychange", renew, { once: true });
      controller.abort();
      offer(form);
    };
    // The browser offers passkeys for as long as the page is open, but a challenge expires.
    setTimeout(renew, options.timeout - 30000);
    const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(options);
    send(form, await navigator.credentials.get({ publicKey, mediation: "conditional", signal: controller.signal }));
  } catch {
    // Aborted, or the service is away: the password and the button still work.
  }
};

const can = { get: "parseRequestOptionsFromJSON", create: "parseCreationOptionsFromJSON" };
for (const form of document.querySelectorAll("[data-passkey]")) {
  const kind = form.dataset.passkey;
  if (!window.PublicKeyCredential?.[can[kind]]) {
    form.hidden = true;
    continue;
  }
  form.addEventListener("submit", async (event) => {
    if (form.elements.credential.value) return;
    event.preventDefault();
    // Browsers answer one request at a time.
    for (const controller of offered.values()) controller.abort();
    let options;
    try {
      options = await challengeOf(form);
    } catch {
      // The button's page explains why there is no challenge.
      form.action = event.submitter.formAction;
      form.submit();
      return;
    }
    try {
      send(form, await navigator.credentials[kind]({ publicKey: PublicKeyCredential[can[kind]](options) }));
    } catch {
      // The user has cancelled, or has no passkey.
      showError(form, form.dataset.failed);
      if (form.dataset.challenge) offer(form);
    }
  });
  if (form.dataset.challenge) offer(form);
}

// Right after a password was filled in, some browsers make a passkey by themselves. Others never answer: the
// button aborts this, and nothing waits for it.
for (const form of document.querySelectorAll("[data-upgrade]")) {
  const upgrade = async () => {
    const capabilities = await PublicKeyCredential.getClientCapabilities?.();
    if (!capabilities?.conditionalCreate) return;
    const controller = new AbortController();
    offered.set(form, controller);
    const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(JSON.parse(form.dataset.upgrade));
    const { signal } = controller;
    send(form, await navigator.credentials.create({ publicKey, mediation: "conditional", signal }));
  };
  if (window.PublicKeyCredential) upgrade().catch(() => {});
}

// Go on if the browser has no passkeys to offer.
for (const form of document.querySelectorAll("[data-without-passkeys]")) {
  if (!window.PublicKeyCredential?.[can.create]) form.requestSubmit();
}

// Tick off the rules of a new password, keep the form while one is not met, and ask the service whether the
// password is a common one.
const rules = { lowercase: /\p{Lowercase}/u, uppercase: /\p{Uppercase}/u, numbers: /\p{Nd}/u, symbols: /[^\p{L}\p{N}]/u };
for (const list of document.querySelectorAll(".rules")) {
  const field = list.parentElement.querySelector("input");
  const { elements } = field.form;
  const tick = () => {
    for (const { classList, dataset } of list.children) {
      const isMet = rules[dataset.rule]?.test(field.value) ?? [...field.value].length >= dataset.least;
      classList.toggle("met", isMet);
      if (isMet) classList.remove("unmet");
    }
  };
  field.addEventListener("input", tick);
  field.form.addEventListener("submit", (event) => {
    tick();
    const missing = [...list.children].filter((rule) => !rule.classList.contains("met"));
    if (!missing.length) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    missing.forEach((rule) => rule.classList.add("unmet"));
    field.setAttribute("aria-invalid", "true");
    field.focus();
  }, { capture: true });
  if (list.dataset.common) field.addEventListener("change", async () => {
    const password = field.value;
    const email = (elements.email ?? elements.username)?.value ?? "";
    const body = new URLSearchParams({ form_token: elements.form_token.value, password, email });
    const response = password && await fetch(list.dataset.common, { method: "POST", body }).catch(() => null);
    const problem = response?.ok ? (await response.json()).problem : null;
    if (field.value !== password) return;
    const shown = problem ? showError(list.parentElement, problem, list) : list.parentElement.querySelector(".wrong");
    // A sentence that is gone keeps its place: the button must not move under a click.
    shown?.classList.toggle("gone", !problem);
    field.toggleAttribute("aria-invalid", false);
    if (problem) field.setAttribute("aria-invalid", "true");
    field.setAttribute("aria-describedby", problem ? "problem rules" : "rules");
  });
}

// Buttons that need the script: copy a text, and print the page.
for (const button of document.querySelectorAll("[data-copy], [data-print]")) {
  const { copy, done } = button.dataset;
  button.hidden = copy !== undefined && !navigator.clipboard;
  button.addEventListener("click", async () => {
    if (copy === undefined) return print();
    // The user may have forbidden it.
    await navigator.clipboard.writeText(copy).then(() => { button.textContent = done; }, () => {});
  });
}

// Count down to the next code. Without JavaScript, the sentence below the button says when.
for (const button of document.querySelectorAll("[data-again-in]")) {
  const text = button.textContent, end = Date.now() + button.dataset.againIn * 1000;
  const tick = () => {
    const left = Math.ceil((end - Date.now()) / 1000);
    button.disabled = left > 0;
    button.textContent = left > 0 ? `${text} (${Math.floor(left / 60)}:${String(left % 60).padStart(2, "0")})` : text;
    if (left > 0) setTimeout(tick, 1000);
  };
  button.nextElementSibling.hidden = true;
  tick();
}
