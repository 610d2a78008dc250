// The script of pages: keyboard shortcuts, forms that are sent once, the editor of the catalog, and charts.
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

/** A form is sent once, however often its button is pressed. The server ensures the same. */
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.dataset.sent === "yes") event.preventDefault();
  else if (form.method === "post") form.dataset.sent = "yes";
});
addEventListener("pageshow", () => {
  for (const form of document.forms) delete form.dataset.sent;
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

/** A click elsewhere closes an open menu. */
document.addEventListener("click", ({ target }) => {
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (!menu.contains(target)) menu.open = false;
  }
});

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

/** Draws the charts of the page: stacked bars by day. */
const drawCharts = () => {
  if (typeof uPlot === "undefined") return;
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  const short = new Intl.NumberFormat("en-US", { notation: "compact", maximumFractionDigits: 1 });
  for (const place of document.querySelectorAll("[data-chart]")) {
    const { days, series, measure } = JSON.parse(place.dataset.chart);
    const dollars = new Intl.NumberFormat("en-US", {
      style: "currency",
      currency: "USD",
      maximumSignificantDigits: 3,
    });
    const shown = measure === "cents" ? (value) => dollars.format(value / 100) : (value) => String(value);
    const onAxis = measure === "cents" ? shown : (value) => short.format(value);
    // The largest sum is drawn first, and each smaller sum over it.
    const stacked = series.map((_, index) =>
      days.map((_, day) => series.slice(0, index + 1).reduce((sum, { values }) => sum + values[day], 0))
    ).reverse();
    const bars = uPlot.paths.bars({ size: [0.8, 40], gap: 1 });
    const axis = {
      stroke: colour("soft"),
      grid: { stroke: colour("line"), width: 1 },
      ticks: { show: false },
    };
    place.replaceChildren();
    const chart = new uPlot(
      {
        width: place.clientWidth,
        height: 220,
        legend: { show: false },
        cursor: { drag: { x: false, y: false }, points: { show: false } },
        tzDate: (at) => uPlot.tzDate(new Date(at * 1e3), "Etc/UTC"),
        scales: { y: { range: (_, __, most) => [0, most <= 0 ? 1 : most * 1.05] } },
        axes: [{
          ...axis,
          incrs: [1, 2, 7, 14].map((count) => count * 86_400),
          values: (_, splits) => splits.map((at) => new Date(at * 1e3).toISOString().slice(5, 10)),
        }, { ...axis, size: 60, values: (_, splits) => splits.map(onAxis) }],
        series: [
          {},
          ...series.map(({ name }, index) => ({
            label: name,
            fill: colour(name === "all others" ? "others" : `colour-${index + 1}`),
            width: 0,
            paths: bars,
            points: { show: false },
          })).reverse(),
        ],
        hooks: {
          setCursor: [({ cursor }) => {
            const { idx } = cursor;
            if (idx == null) return;
            const parts = series.filter(({ values }) => values[idx] > 0)
              .map(({ name, values }) => `${name} ${shown(values[idx])}`);
            place.nextElementSibling.textContent = [days[idx], ...parts].join(" · ");
          }],
        },
      },
      [days.map((day) => Date.parse(day) / 1000), ...stacked],
      place,
    );
    new ResizeObserver(() => {
      if (place.clientWidth !== chart.width) chart.setSize({ width: place.clientWidth, height: 220 });
    }).observe(place);
  }
};
addEventListener("DOMContentLoaded", drawCharts);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawCharts);
