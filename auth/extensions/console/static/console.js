// Progressive enhancement: the console works without it.
const search = document.querySelector("#search");
addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input, textarea, select, [contenteditable]")) return;
  event.preventDefault();
  search?.select();
});

// A menu closes when it is left, or by Escape.
for (const menu of document.querySelectorAll(".menu")) {
  const leave = (next) => { if (next && !menu.contains(next)) menu.open = false; };
  menu.addEventListener("focusout", ({ relatedTarget }) => leave(relatedTarget));
  addEventListener("click", ({ target }) => leave(target));
  addEventListener("keydown", ({ key }) => { if (key === "Escape") menu.open = false; });
}

// One box at the head of the list ticks those of all users on the page.
const boxes = [...document.querySelectorAll("[name=id][form=chosen]")];
if (boxes.length > 1) {
  const all = document.createElement("input");
  Object.assign(all, { type: "checkbox", ariaLabel: "Choose all on this page" });
  document.querySelector("thead td").className = "tick";
  document.querySelector("thead td").appendChild(document.createElement("label")).append(all);
  all.addEventListener("change", () => boxes.forEach((box) => { box.checked = all.checked; }));
  const show = () => {
    const ticked = boxes.filter((box) => box.checked).length;
    Object.assign(all, { checked: ticked === boxes.length, indeterminate: ticked > 0 && ticked < boxes.length });
  };
  for (const box of boxes) box.addEventListener("change", show);
  show();
}

// A filter applies at once if it is chosen with the pointer. By keyboard, each arrow chooses one.
for (const select of document.querySelectorAll("[data-filter] select")) {
  select.addEventListener("change", () => { if (!select.matches(":focus-visible")) select.form.requestSubmit(); });
}
document.querySelector("[data-filter] button")?.classList.add("unseen");

// The passkey form also sends the fields of the act.
const act = document.querySelector("#act");
for (const form of act ? document.querySelectorAll("[data-passkey]") : []) {
  const own = new Set([...form.elements].map((field) => field.name));
  form.addEventListener("submit", (event) => {
    const fields = [...act.elements].filter((field) => field.name && field.name !== "factor_code");
    if (!fields.every((field) => field.reportValidity())) {
      event.preventDefault();
      event.stopImmediatePropagation();
      return;
    }
    // Left by a cancelled attempt.
    for (const copy of form.querySelectorAll("[data-copy]")) copy.remove();
    for (const [name, value] of new FormData(act)) {
      if (name === "factor_code" || own.has(name)) continue;
      const copy = document.createElement("input");
      Object.assign(copy, { type: "hidden", name, value });
      copy.dataset.copy = "";
      form.append(copy);
    }
  }, { capture: true });
}

// An act on many users goes on by itself, but not when its page is opened again from the history.
if (performance.getEntriesByType("navigation")[0].type === "navigate") {
  document.querySelector("[data-continue]")?.requestSubmit();
}
