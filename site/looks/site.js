// Names for what the theme leaves without one; and what scrolls is reached by the keyboard (WCAG 2.1, AA).

function complete() {
  document.querySelector(".md-search")?.setAttribute("aria-label", "Search");
  document
    .querySelectorAll("nav[aria-labelledby], .md-code__nav")
    .forEach((nav, at) => {
      const title = document.getElementById(nav.getAttribute("aria-labelledby") ?? "");
      nav.removeAttribute("aria-labelledby");
      nav.setAttribute("aria-label", `${title?.textContent.trim() || "Code"}, ${at + 1}`);
    });
  document.querySelectorAll(".md-typeset__scrollwrap, pre code").forEach((box) => {
    if (box.scrollWidth > box.clientWidth) {
      box.setAttribute("tabindex", "0");
    } else {
      box.removeAttribute("tabindex");
    }
  });
}

// Some of it the theme adds when the page is there.
addEventListener("load", () => setTimeout(complete));
addEventListener("resize", complete);
