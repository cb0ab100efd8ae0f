// Names for what the theme leaves without one; and what scrolls is reached by the keyboard (WCAG 2.1, AA).

function name() {
  document.querySelector(".md-search")?.setAttribute("aria-label", "Search");
  document
    .querySelectorAll("nav[aria-labelledby], .md-code__nav")
    .forEach((nav, at) => {
      const title = document.getElementById(nav.getAttribute("aria-labelledby") ?? "");
      nav.removeAttribute("aria-labelledby");
      nav.setAttribute("aria-label", `${title?.textContent.trim() || "Code"}, ${at + 1}`);
    });
}

// Code that scrolls is the theme's own care.
function reach() {
  document.querySelectorAll(".md-typeset__scrollwrap").forEach((box) => {
    if (box.scrollWidth > box.clientWidth) {
      box.setAttribute("tabindex", "0");
    } else {
      box.removeAttribute("tabindex");
    }
  });
}

// Some of it the theme adds when the page is there.
addEventListener("load", () =>
  setTimeout(() => {
    name();
    reach();
  }),
);
addEventListener("resize", reach);
