// What pages do in the browser beside loading parts of themselves: keys, and the last word before a form is sent twice.
"use strict";

const isTyping = (element) =>
  element instanceof HTMLElement &&
  (element.isContentEditable || /^(input|textarea|select)$/i.test(element.tagName));

/** The rows of the list that the focus is in, or of the first one on the page. */
const rowsAround = (element) => {
  const table = element.closest?.("table") ?? document.querySelector("main table");
  return table === null ? [] : [...table.querySelectorAll("a.row")];
};

document.addEventListener("keydown", (event) => {
  const { key, target } = event;
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (key === "Escape") {
    const dialog = document.querySelector("details.menu[open]");
    if (dialog !== null) dialog.open = false;
    else if (isTyping(target)) target.blur();
    return;
  }
  if (isTyping(target)) return;
  if (key === "/") {
    const search = document.getElementById("search");
    if (search === null) return;
    event.preventDefault();
    search.focus();
    search.select();
  } else if (key === "ArrowDown" || key === "ArrowUp" || key === "j" || key === "k") {
    const rows = rowsAround(target);
    if (rows.length === 0) return;
    event.preventDefault();
    const step = key === "ArrowDown" || key === "j" ? 1 : -1;
    const at = rows.indexOf(document.activeElement);
    const next = at < 0
      ? (step > 0 ? 0 : rows.length - 1)
      : Math.min(Math.max(at + step, 0), rows.length - 1);
    rows[next].focus();
  }
});

/** A form is sent once, however often its button is pressed; the server holds to the same. */
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.dataset.sent === "yes") event.preventDefault();
  else if (form.method === "post") form.dataset.sent = "yes";
});
addEventListener("pageshow", () => {
  for (const form of document.forms) delete form.dataset.sent;
});
