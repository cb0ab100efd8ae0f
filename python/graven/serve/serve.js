"use strict";
// Comfort: a choice is shown without a new page, and what runs is looked at again and again. Without scripts the form has a
// button, and the page of progress is loaded anew by itself.
(() => {
  let latest = 0;
  const parts = async (address) => {
    const answer = await fetch(address, { headers: { Accept: "text/html" } });
    return new DOMParser().parseFromString(await answer.text(), "text/html");
  };
  const address = (form) => {
    const chosen = [...new FormData(form)].filter(([name, value]) => value !== "" || name === "set");
    return `${form.action}?${new URLSearchParams(chosen)}`;
  };
  const show = async (where) => {
    const mine = ++latest;
    const main = document.getElementById("main");
    main.setAttribute("aria-busy", "true");
    const page = await parts(where);
    if (mine !== latest) return;
    const focused = document.activeElement && document.activeElement.id;
    const open = [...main.querySelectorAll("details[id][open]")].map((each) => each.id);
    main.replaceWith(page.getElementById("main"));
    for (const id of open) document.getElementById(id)?.setAttribute("open", "");
    if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
    document.title = page.title;
    window.gravenTables(document.getElementById("main"));
  };
  document.addEventListener("change", (event) => {
    const form = event.target.closest("form[data-live]");
    if (!form) return;
    // What one kind of plot is of, another may not know.
    if (event.target.name === "kind") form.elements.metric.value = "";
    const where = address(form);
    history.pushState(null, "", where);
    show(where).catch(() => form.submit());
  });
  window.addEventListener("popstate", () => { show(location.href).catch(() => location.reload()); });
  for (const part of document.querySelectorAll("[data-refresh]")) {
    const again = async () => {
      if (!document.hidden) {
        try {
          const there = (await parts(location.href)).getElementById(part.id);
          if (there) part.replaceChildren(...there.childNodes);
        } catch {
          // The explorer has ended, perhaps for a while only.
        }
      }
      setTimeout(again, 1000 * Number(part.dataset.refresh));
    };
    setTimeout(again, 1000 * Number(part.dataset.refresh));
  }
})();
