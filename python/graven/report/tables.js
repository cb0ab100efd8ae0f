"use strict";
// Tables of numbers and claims are sorted by a click on a heading, and settings searched. Without scripts all is there as well.
(() => {
  const value = (row, at) => {
    const cell = row.cells[at];
    const text = cell ? cell.textContent.trim() : "";
    const number = Number.parseFloat(text.replace(/,/g, ""));
    const factor = { k: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15 }[(text.match(/^[-\d.,e]+ ([kMGTP])\b/) || [])[1]] || 1;
    return { text, number: /^[-\d.]/.test(text) ? number * factor : Number.NaN };
  };
  const before = (a, b) => {
    if (Number.isNaN(a.number) !== Number.isNaN(b.number)) return Number.isNaN(a.number) ? 1 : -1;
    return Number.isNaN(a.number) ? a.text.localeCompare(b.text) : a.number - b.number;
  };
  for (const table of document.querySelectorAll("table.numbers:not(.papers), table.claims")) {
    const body = table.tBodies[0];
    if (!body || body.rows.length < 2 || body.querySelector("[rowspan]")) continue;
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, at) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const rows = [...body.rows].map((row) => [value(row, at), row]);
        rows.sort(([a], [b]) => (down ? before(b, a) : before(a, b)));
        body.append(...rows.map(([, row]) => row));
      });
    });
  }
  const settings = [...document.querySelectorAll("table.settings")];
  const part = settings.length && settings[0].closest("section");
  if (part && part.querySelector("details")) {
    const label = document.createElement("label");
    label.className = "search";
    label.textContent = "Find a key";
    const field = document.createElement("input");
    field.type = "search";
    label.append(field);
    part.querySelector("details").before(label);
    field.addEventListener("input", () => {
      const wanted = field.value.trim().toLowerCase();
      for (const table of settings) {
        let found = 0;
        for (const row of table.tBodies[0].rows) {
          row.hidden = !row.cells[0].textContent.toLowerCase().includes(wanted);
          found += !row.hidden;
        }
        const section = table.closest("details");
        section.hidden = !found;
        if (wanted) section.open = found > 0;
      }
    });
  }
})();
