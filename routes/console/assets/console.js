// The script of pages: keyboard shortcuts, menus, forms that are sent once, the editor of the catalog, numbers of charts.
"use strict";

const isTyping = (element) =>
  element instanceof HTMLElement &&
  (element.isContentEditable || /^(input|textarea|select)$/i.test(element.tagName));

/** The row links of the table with the focus, or of the first table on the page. */
const rowsAround = (element) => {
  const table = element.closest?.("table") ?? document.querySelector("main table");
  return table === null ? [] : [...table.querySelectorAll("a.row")];
};

document.addEventListener("keydown", (event) => {
  const { key, target } = event;
  const isSearch = key === "/" || (key === "k" && (event.ctrlKey || event.metaKey));
  if (!isSearch && (event.ctrlKey || event.metaKey || event.altKey)) return;
  if (key === "Escape") {
    const menu = document.querySelector("details.menu[open]");
    if (menu !== null) {
      menu.open = false;
      menu.querySelector("summary").focus();
    } else if (isTyping(target)) target.blur();
    return;
  }
  if (isTyping(target) || document.querySelector("dialog[open]") !== null) return;
  if (key === "?") {
    document.getElementById("shortcuts")?.showModal();
  } else if (isSearch) {
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

/** A menu closes with a click elsewhere, also in another menu. */
document.addEventListener("click", ({ target }) => {
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (!menu.contains(target)) menu.open = false;
  }
  if (target.closest?.("[data-opens]")) document.getElementById("shortcuts").showModal();
});
for (const button of document.querySelectorAll("[data-opens]")) button.hidden = false;

/** A form is sent once, however often its button is pressed. The server ensures the same. */
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.dataset.sent === "yes") event.preventDefault();
  else if (form.method === "post") form.dataset.sent = "yes";
});
addEventListener("pageshow", () => {
  for (const form of document.forms) delete form.dataset.sent;
});

/** Going back to the answer of a form asks for its page again. A browser would show an error, since no answer is stored. */
if (document.querySelector("[data-answer]") !== null) history.replaceState(history.state, "");
/** A browser may keep the whole page in memory instead: an answer, which may have a secret, is not kept, and others are read again. */
addEventListener("pagehide", () => document.querySelector("[data-answer]")?.remove());
addEventListener("pageshow", ({ persisted }) => {
  if (persisted) location.replace(location.pathname + location.search);
});

/** Shows the line and column of the caret in a long text. */
const showPlace = (area) => {
  const place = document.getElementById(area.dataset.places);
  if (place === null) return;
  const before = area.value.slice(0, area.selectionStart);
  const line = before.split("\n").length;
  place.textContent = `Line ${line}, column ${before.length - before.lastIndexOf("\n")}`;
};
document.addEventListener("selectionchange", () => {
  const area = document.activeElement;
  if (area instanceof HTMLTextAreaElement && area.dataset.places !== undefined) showPlace(area);
});

/** Scrolls a long text to a place: moving the caret by script doesn't scroll. */
const showLine = (area, at) => {
  const lines = area.value.slice(0, at).split("\n").length;
  area.scrollTop = Math.max(0, (lines - 4) * parseFloat(getComputedStyle(area).lineHeight));
};

document.addEventListener("click", async ({ target }) => {
  const link = target.closest?.("[data-jumps], [data-copies]");
  if (link === null || link === undefined) return;
  if (link.dataset.copies !== undefined) {
    await navigator.clipboard.writeText(document.getElementById(link.dataset.copies).value);
    link.textContent = "Copied";
    return;
  }
  const area = document.querySelector(link.getAttribute("href"));
  const at = Number(link.dataset.jumps);
  area.setSelectionRange(at, at + 1);
  area.focus();
  showLine(area, at);
});
if (navigator.clipboard !== undefined) {
  for (const button of document.querySelectorAll("[data-copies]")) button.hidden = false;
}

/** Parts of a page that are replaced keep which of their details are open. */
let openDetails = [];
document.addEventListener("htmx:beforeSwap", ({ target }) => {
  openDetails = [...target.querySelectorAll("details[id][open]")].map(({ id }) => id);
});
document.addEventListener("htmx:afterSwap", () => {
  for (const id of openDetails) document.getElementById(id)?.setAttribute("open", "");
});

/** Scrolls to the first error when the page has loaded. */
const firstFault = document.querySelector("[data-jumps]");
if (firstFault !== null) {
  const area = document.querySelector(firstFault.getAttribute("href"));
  showLine(area, Number(firstFault.dataset.jumps));
}

/** Shows the numbers of a day of a chart, under the pointer or chosen with the arrow keys. */
const showDay = (chart, place) => {
  const days = [...chart.querySelectorAll("g")];
  const day = days[Math.min(Math.max(place, 0), days.length - 1)];
  if (day === undefined) return;
  chart.querySelector("g.shown")?.classList.remove("shown");
  day.classList.add("shown");
  chart.nextElementSibling.textContent = day.querySelector("title").textContent;
};
const dayAt = (chart) => [...chart.querySelectorAll("g")].findIndex((day) => day.matches(".shown"));
for (const type of ["pointerover", "pointerdown"]) {
  document.addEventListener(type, ({ target }) => {
    const chart = target.closest?.(".chart");
    const day = target.closest?.("g");
    if (chart && day) showDay(chart, [...chart.querySelectorAll("g")].indexOf(day));
  });
}
document.addEventListener("keydown", (event) => {
  const chart = event.target;
  if (!chart.matches?.(".chart") || event.ctrlKey || event.metaKey || event.altKey) return;
  const at = dayAt(chart);
  const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (step !== undefined) showDay(chart, at < 0 ? Infinity : at + step);
  else if (event.key === "Home") showDay(chart, 0);
  else if (event.key === "End") showDay(chart, Infinity);
  else return;
  event.preventDefault();
});
