"use strict";
// The section of a simulation is filled when it is shown; a bar leads to its simulation as the table of all does.
(() => {
  const packed = document.getElementById("simulations-data");
  if (!packed) return;
  let data;
  const unpacked = () => {
    data ??= (async () => {
      const bytes = Uint8Array.from(atob(packed.content.textContent.trim()), (each) => each.charCodeAt(0));
      const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
      return new Response(stream).json();
    })();
    return data;
  };
  const element = (name, content, className) => {
    const made = document.createElement(name);
    if (className) made.className = className;
    made.append(...[content].flat());
    return made;
  };
  const table = (label, className, heads, rows) => {
    const cells = (row) => row.map(([text, kind], at) => {
      const cell = element(at ? "td" : "th", at ? text : element("code", text), kind);
      if (!at) cell.scope = "row";
      return cell;
    });
    const heading = heads.map((head) => {
      const cell = element("th", head);
      cell.scope = "col";
      return cell;
    });
    const made = element("table", [
      element("thead", element("tr", heading)),
      element("tbody", rows.map((row) => element("tr", cells(row)))),
    ], className);
    const scroll = element("div", made, "scroll");
    scroll.tabIndex = 0;
    scroll.setAttribute("role", "region");
    scroll.setAttribute("aria-label", label);
    return scroll;
  };
  const pairs = (list) => Array.from({ length: list.length / 2 }, (_, at) => list.slice(2 * at, 2 * at + 2));
  const fill = (section, { headings, statistics, parameters, pages }) => {
    const page = pages[Number(section.id.slice(2))];
    const title = section.querySelector("h1").textContent;
    const facts = page.facts.map(([name, value]) => element("div", [element("dt", name), element("dd", value)]));
    const parts = [element("dl", facts, "facts")];
    for (const [heading, cells] of page.groups) {
      const rows = pairs(cells).map(([at, value]) => {
        const [name, unit, description] = statistics[at];
        return [[name], [value], [unit], [description, "text"]];
      });
      const [name] = headings[heading];
      parts.push(element("h2", name), table(`${title}: ${name}`, "statistics", ["statistic", "value", "unit", "description"], rows));
    }
    parts.push(element("p", `${page.zero} statistics are zero and left out.`, "note"));
    const changed = pairs(page.changed).map(([at, value]) => {
      const [key, unit, usual, doc] = parameters[at];
      return [[key], [`${value} ${unit}`], [usual], [doc, "origin"]];
    });
    parts.push(element("h2", "Configuration that is not the default"));
    parts.push(changed.length
      ? table(`${title}: configuration`, "settings", ["key", "value", "default", "what it is"], changed)
      : element("p", "All of it is the default."));
    section.append(...parts);
    section.dataset.filter = "Filter statistics";
    window.gravenTables(section);
  };
  let within = false;
  const show = async () => {
    const section = document.getElementById(location.hash.slice(1));
    if (!section || !section.matches(".simulation")) return;
    scrollTo(0, 0);
    if (section.dataset.shown) return;
    section.dataset.shown = "yes";
    try {
      fill(section, await unpacked());
    } catch (error) {
      section.append(element("p", `This browser cannot unpack the numbers: ${error.message}`, "note"));
    }
  };
  addEventListener("hashchange", () => {
    within = true;
    show();
  });
  document.addEventListener("click", (event) => {
    const bar = event.target.closest("[data-simulation]");
    if (bar) location.hash = `s-${bar.dataset.simulation}`;
    const back = event.target.closest(".simulation .back");
    if (back && within) {
      event.preventDefault();
      history.back();
    }
  });
  show();
})();
