// Pages opened from the disk may not read each other: there, the search shows titles without the words around a hit.
if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;

// A menu that is closed gives the focus back to the button that opened it.
document.addEventListener("DOMContentLoaded", () => {
    let opener;
    for (const button of document.querySelectorAll(".primary-toggle, .secondary-toggle"))
        button.addEventListener("click", () => { opener = button; });
    for (const menu of document.querySelectorAll("dialog"))
        menu.addEventListener("close", () => opener?.focus());
});

// A formula that is wider than the page scrolls by itself: the keyboard must be able to reach it.
addEventListener("load", () => window.MathJax?.startup?.promise.then(() => {
    for (const formula of document.querySelectorAll('mjx-container[display="true"]'))
        if (formula.scrollWidth > formula.clientWidth) formula.tabIndex = 0;
}));
