"""What does not fit on a deck's slides: text or code over the edge, and pictures so small that nobody can read them."""

from typing import TYPE_CHECKING

from workshop.publish.figures import DOTS_PER_INCH

if TYPE_CHECKING:
    from playwright.sync_api import Page

SMALLEST = 95  # pixels of a slide of 1280 for an inch of a picture, whose smallest letters are 8 points high

FIND = """([dotsPerInch, smallest]) => {
    const found = [];
    document.querySelectorAll(".pdf-page").forEach((page, index) => {
        const frame = page.getBoundingClientRect(), zoom = frame.width / 1280;
        const say = (what) => found.push(`slide ${index + 1}: ${what}`);
        if (frame.height > 721 * zoom) say("more than fits on one");
        const words = (element) => element.textContent.trim().slice(0, 30) || element.tagName.toLowerCase();
        for (const element of page.querySelectorAll("h1, h2, h3, p, li, pre, table, img, mjx-container")) {
            const box = element.getBoundingClientRect();
            const over = Math.max(frame.left - box.left, box.right - frame.right,
                                  frame.top - box.top, box.bottom - frame.bottom) / zoom;
            if (box.width && over > 1 && !element.closest("aside")) {
                say(`“${words(element)}” is ${Math.round(over)} pixels over the edge`);
            }
        }
        for (const code of page.querySelectorAll("pre code")) {
            if (code.scrollWidth > code.clientWidth + 1 || code.scrollHeight > code.clientHeight + 1) {
                say(`code that has to be scrolled: “${words(code)}”`);
            }
        }
        for (const picture of page.querySelectorAll("img")) {
            const scale = picture.getBoundingClientRect().width / zoom / (picture.naturalWidth / dotsPerInch);
            if (scale < smallest) say(`a picture is drawn ${Math.round(scale)} pixels to the inch, too small to read`);
        }
    });
    return found;
}"""


def crowded(tab: "Page") -> list[str]:
    """What does not fit, a line each, on the slides of a deck that is open for printing (`?print-pdf`)."""
    return tab.evaluate(FIND, [DOTS_PER_INCH, SMALLEST])
