"""Build the decks: Markdown to reveal.js slides that present without a network, figures by real runs, and PDFs.

Each deck becomes three PDFs: the slides, the slides with the speaker's notes, and the lesson's handout.
"""

import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from workshop.publish.commands import run
from workshop.publish.crowded import crowded
from workshop.publish.deck_slides import FIGURE
from workshop.publish.handouts import print_handout
from workshop.publish.mathjax import mathjax_script
from workshop.publish.notebooks import kernel_environment
from workshop.publish.notes_pdf import print_notes
from workshop.publish.page_figures import figures_of
from workshop.publish.paper import offline_tab
from workshop.publish.sources import ALT_TEXT, ROOT, AuthoringError, BusyFigure, choose

FIGURE_SECONDS = 400
SPHINX_SECONDS = 180
UNUSED = ("css", "plugin/markdown", "plugin/math", "plugin/search", "plugin/zoom")  # of reveal.js, in every deck


def decks(root: Path = ROOT, wanted: list[str] | None = None) -> list[Path]:
    """The decks' Markdown files, in the order of lessons."""
    found = sorted((root / "slides" / "src").glob("*.md"))
    return choose(found, [path.stem for path in found], wanted)


def build_decks(
    root: Path = ROOT,
    wanted: list[str] | None = None,
    out: Path | None = None,
    pdf: bool = True,
    draft: bool = False,
) -> Iterator[str]:
    """Build decks one after the other, telling of each.

    Args:
        root: the repository.
        wanted: stems; none means all.
        out: the folder for NN_stem/index.html, NN_stem.pdf, NN_stem_notes.pdf, NN_stem_handout.pdf and figures/;
            slides/build where not given.
        pdf: whether to make PDFs, which needs Chromium.
        draft: draw figures from fewer and smaller runs, where their file says so.

    Yields:
        A line for each thing built.

    Raises:
        AuthoringError: where a deck, a figure or a PDF cannot be made.
    """
    out = (out or root / "slides" / "build").resolve()
    script = mathjax_script(root / "slides" / "build" / "cache")
    for deck in decks(root, wanted):
        yield from draw_figures(root, deck, out / "figures", draft)
        page = build_deck(root, deck, out, script)
        yield f"{page}: {count_slides(page)} slides"
        if pdf and shutil.which("chromium"):
            slides_pdf = print_pdf(page, out / f"{deck.stem}.pdf")
            yield str(slides_pdf)
            yield str(print_notes(deck, slides_pdf, out / f"{deck.stem}_notes.pdf", script))
            if handout := print_handout(deck, out / "figures", out / f"{deck.stem}_handout.pdf", script):
                yield str(handout)
        elif pdf:
            yield "no PDF: install chromium (Debian: apt install chromium)"


def draw_figures(root: Path, deck: Path, folder: Path, draft: bool = False) -> list[str]:
    """Draw the figures that the deck shows, in a process of their own.

    Returns:
        Warnings: figures that say that the machine was busy.

    Raises:
        AuthoringError: where a figure is missing from slides/src/NN_stem.py or fails.
    """
    wanted = set(FIGURE.findall(deck.read_text(encoding="utf-8")))
    source = deck.with_suffix(".py")
    if not wanted:
        return []
    if not source.is_file() and not figures_of(deck.stem, deck.resolve().parents[2]):
        raise AuthoringError(f"{deck.name} shows figures, but there is no {source.name} that draws them")
    for name in wanted:
        (folder / f"{name}.png").unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(prefix="course-figures-", ignore_cleanup_errors=True) as scratch:
        command = [sys.executable, "-m", "workshop.publish.figures", str(source.resolve()), str(folder)]
        command += ["--draft"] if draft else []
        environment = kernel_environment(Path(scratch), root)
        output = run(command, Path(scratch), FIGURE_SECONDS, f"drawing {source.name}", environment)
    missing = sorted(name for name in wanted if not (folder / f"{name}.png").is_file())
    if missing:
        raise AuthoringError(f"{deck.name} shows {', '.join(missing)}, which {source.name} does not draw")
    warned = (line.partition(f"{BusyFigure.__name__}: ")[2] for line in output.splitlines())
    return [text for text in warned if text]


def build_deck(root: Path, deck: Path, out: Path, mathjax: Path) -> Path:
    """Build one deck; returns its index.html."""
    target = out / deck.stem
    with tempfile.TemporaryDirectory(prefix="course-deck-") as folder:
        project = Path(folder)
        static = project / "_static"
        (static / "mathjax").mkdir(parents=True)
        shutil.copy(mathjax, static / "mathjax")
        shutil.copy(root / "slides" / "style" / "course.css", static)
        shutil.copy(root / "slides" / "conf.py", project)
        text = with_alt_texts(next_slides(deck.read_text(encoding="utf-8")), out / "figures")
        (project / "index.md").write_text(text, encoding="utf-8")
        if (out / "figures").is_dir():
            shutil.copytree(out / "figures", project / "figures")
        built = project / "built"
        command = [sys.executable, "-m", "sphinx", "-b", "revealjs", "-q", "-W", "--keep-going", ".", str(built)]
        run(command, project, SPHINX_SECONDS, f"building {deck.name}")
        tidy(built)
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(built, target)
    return target / "index.html"


def with_alt_texts(text: str, figures: Path) -> str:
    """The deck with an alternative text for each figure that has none: the one that was drawn with it."""

    def alternative(match: re.Match[str]) -> str:
        file = figures / f"{match['name']}{ALT_TEXT}"
        return f"{match[0]}:alt: {file.read_text(encoding='utf-8')}\n" if file.is_file() else match[0]

    return re.sub(r"^```\{figure\} figures/(?P<name>[\w-]+)\.png\n(?!:alt:)", alternative, text, flags=re.MULTILINE)


def next_slides(text: str) -> str:
    """The deck with its lines `---` made into what Sphinx knows: a heading begins a slide, and so does `---` alone."""
    lines, fence = [], None
    source = text.splitlines()
    for number, line in enumerate(source):
        mark = re.match(r"\s*(`{3,}|:{3,}|~{3,})", line)
        if mark and fence is None:
            fence = mark[1]
        elif mark and mark[1].startswith(fence or " ") and line.strip() == mark[1]:
            fence = None
        if fence is None and line.strip() == "---":
            following = next((other for other in source[number + 1 :] if other.strip()), "")
            lines += [] if following.startswith("#") else ["```{revealjs-break}", ":notitle:", "```"]
        else:
            lines.append(line)
    return "\n".join(lines) + "\n"


def tidy(built: Path) -> None:
    """Leave plain text without colours, and out of a built deck what it does not use: other themes, some of which want
    fonts from the network."""
    page = built / "index.html"
    plain = page.read_text(encoding="utf-8").replace(
        'data-noescape class="default"', 'data-noescape class="nohighlight"'
    )
    page.write_text(plain, encoding="utf-8")
    shutil.rmtree(built / ".doctrees", ignore_errors=True)
    reveal = built / "_static" / "revealjs"
    for name in UNUSED:
        shutil.rmtree(reveal / name, ignore_errors=True)
    for theme in (reveal / "dist" / "theme").glob("*.css"):
        if theme.name != "white.css":
            theme.unlink()
    for source_map in reveal.rglob("*.map"):
        source_map.unlink()


def count_slides(page: Path) -> int:
    """How many slides a built deck has: sections that hold no other section."""
    parts = re.findall(r"<(/?)section\b", page.read_text(encoding="utf-8"))
    return sum(1 for tag, following in zip(parts, parts[1:], strict=False) if tag == "" and following == "/")


def print_pdf(page: Path, target: Path) -> Path:
    """Print a built deck to PDF through the system's Chromium, with the network closed.

    Raises:
        AuthoringError: Chromium failed, or something does not fit on its slide.
    """
    with offline_tab(str(page)) as tab:
        tab.goto(f"{page.resolve().as_uri()}?print-pdf", wait_until="load")
        tab.wait_for_function("Reveal.isReady() && document.querySelector('.pdf-page') !== null")
        tab.evaluate("window.MathJax && MathJax.startup ? MathJax.startup.promise.then(() => true) : true")
        if found := crowded(tab):
            raise AuthoringError(f"{page.parent.name} does not fit: " + "; ".join(found))
        tab.pdf(path=str(target), prefer_css_page_size=True, print_background=True)
    return target
