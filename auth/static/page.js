// Everything here is a comfort: the pages work without it.
for (const form of document.forms) {
  form.addEventListener("submit", (event) => {
    const button = event.submitter;
    if (!button || form.dataset.passkey) return;
    button.style.width = `${button.offsetWidth}px`;
    button.setAttribute("aria-busy", "true");
    if (button.dataset.busy) button.textContent = button.dataset.busy;
  });
}

for (const field of document.querySelectorAll("[data-show]")) {
  const button = document.createElement("button");
  const label = () => { button.textContent = field.type === "password" ? field.dataset.show : field.dataset.hide; };
  button.type = "button";
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

// The browser restores a page with a busy button when the user comes back.
addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });

// Passkeys: the credential goes into the form. A browser without them hides the form.
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
    try {
      const publicKey = PublicKeyCredential[can[kind]](JSON.parse(form.dataset.options));
      const credential = await navigator.credentials[kind]({ publicKey });
      form.elements.credential.value = JSON.stringify(credential.toJSON());
      form.submit();
    } catch {
      // The user has cancelled, or has no passkey: the form is as before.
    }
  });
}
