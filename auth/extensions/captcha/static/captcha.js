// Solves a challenge for each form that asks for one: from its first input on, or when it is sent.
const GOOD_FOR = 240000; // milliseconds of the five minutes that a challenge lives

for (const box of document.querySelectorAll("[data-captcha]")) {
  const { form } = box.querySelector("input"), status = box.querySelector("[role=status]");
  const paths = box.dataset.captcha.split(" ");
  const asks = (action) => paths.some((path) => new URL(action).pathname.endsWith(`/${path}`));
  const tell = (text) => {
    const place = document.querySelector(".lead");
    place.classList.add("alert");
    place.setAttribute("role", "alert");
    place.textContent = text;
  };
  let worker, solving, startedAt, isSent = false;

  const solve = async () => {
    startedAt = performance.now();
    const response = await fetch(box.dataset.challenge);
    if (!response.ok) throw new Error(response.statusText);
    const challenge = await response.json();
    worker = new Worker(box.dataset.worker);
    const solution = await new Promise((resolve, reject) => {
      worker.onmessage = ({ data }) => resolve(data);
      worker.onerror = reject;
      worker.postMessage(challenge.parameters);
    });
    worker.terminate();
    return btoa(JSON.stringify({ challenge, solution }));
  };
  const begin = () => {
    if (solving && performance.now() - startedAt < GOOD_FOR) return;
    solving = solve();
    // Whoever sends the form learns of the failure.
    solving.catch(() => {});
  };

  if (!isSecureContext) {
    tell(box.dataset.insecure);
    continue;
  }
  if (asks(form.action)) form.addEventListener("input", begin, { once: true });
  // Before page.js, which takes a second submission for a double click.
  form.addEventListener("submit", async (event) => {
    const action = event.submitter?.formAction || form.action;
    if (!asks(action)) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    if (isSent) return;
    isSent = true;
    status.hidden = false;
    const cancelled = new Promise((resolve) => { status.querySelector("button").onclick = () => resolve(null); });
    try {
      begin();
      const token = await Promise.race([solving, cancelled]);
      if (token === null) worker?.terminate();
      else {
        form.elements.captcha_token.value = token;
        form.action = action;
        return form.submit();
      }
    } catch {
      tell(box.dataset.failed);
    }
    solving = undefined;
    isSent = false;
    status.hidden = true;
  }, { capture: true });
}
