"use strict";
// Tables are sorted by a click on a heading, and the rows of a section's tables filtered. Without scripts all is there as well.
window.gravenTables = (root) => {
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
  for (const table of root.querySelectorAll("table.numbers:not(.papers), table.claims")) {
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
  // A section says what its filter is called. A row is shown that has one of the texts, which commas separate.
  const filtered = root.matches && root.matches("[data-filter]") ? [root] : [];
  for (const section of [...filtered, ...root.querySelectorAll("[data-filter]")]) {
    const tables = [...section.querySelectorAll("table")].filter((table) => table.tBodies[0]);
    if (!tables.some((table) => table.tBodies[0].rows.length > 1)) continue;
    const label = document.createElement("label");
    label.className = "search";
    label.textContent = section.dataset.filter;
    const field = document.createElement("input");
    field.type = "search";
    label.append(field);
    const first = tables[0].closest("details") || tables[0].closest(".scroll") || tables[0];
    const heading = first.previousElementSibling;
    (heading && heading.matches("h3, .simulation h2") ? heading : first).before(label);
    field.addEventListener("input", () => {
      const wanted = field.value.toLowerCase().split(",").map((text) => text.trim()).filter((text) => text);
      for (const table of tables) {
        let found = 0;
        for (const row of table.tBodies[0].rows) {
          const text = row.textContent.toLowerCase();
          row.hidden = wanted.length > 0 && !wanted.some((each) => text.includes(each));
          found += !row.hidden;
        }
        const part = table.closest(".scroll") || table;
        part.hidden = !found;
        const above = part.previousElementSibling;
        if (above && above.matches("h3, .simulation h2")) above.hidden = !found;
        const folded = table.closest("details");
        if (folded && folded.hasAttribute("data-unfolds")) {
          folded.hidden = !found;
          if (wanted.length) folded.open = found > 0;
        }
      }
    });
  }
};
window.gravenTables(document);
