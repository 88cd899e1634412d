// Pages opened from the disk may not read each other: there, the search shows titles without the words around a hit.
if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;

// The themes listen to the first button of each menu, which one of them hides; the other buttons pass on to it.
document.addEventListener("DOMContentLoaded", () => {
    for (const menu of [".primary-toggle", ".secondary-toggle"]) {
        const [first, ...others] = document.querySelectorAll(menu);
        for (const other of others) other.addEventListener("click", () => first.click());
    }
});

// A formula that is wider than the page scrolls by itself: the keyboard must be able to reach it.
addEventListener("load", () => window.MathJax?.startup?.promise.then(() => {
    for (const formula of document.querySelectorAll('mjx-container[display="true"]'))
        if (formula.scrollWidth > formula.clientWidth) formula.tabIndex = 0;
}));
