"""What people write for an exercise, right and wrong: read from the Markdown file beside its check.

`roofline_time.py` declares the exercise, `roofline_time.answers.md` holds what is written for it. Its form:

    ## Right
    `loop`: a loop with an if.                    a name, and in what it differs from the others
    ```python                                     the whole program, imports and all
    …
    ```

    ## Wrong
    ### Bits or bytes?                            the question that leads out of the mistake, never the answer
    - `bits` is `loop` with `nbytes / width` → `8 * nbytes / width`.      a word or two of a whole program,
    - `nibbles` is `loop` with `nbytes / width` → `2 * nbytes / width`.

    `no_bytes` changes `loop`:                    or some of its lines
    ```diff
    -    for flops, nbytes in layers:
    +    for flops, _ in layers:
    ```

    ### Do all ranks take part?
    Recognised when it hangs.                     what no program shows: see `course_utils.checks.recognition`
    - `waits_for_all` is `loop` without `comm.Barrier()`.
    - `ends_too_early` is `loop` with `return` after `total += part`.     a line more, as far from the left as that one

    ## Rejected without a question
    ### A list instead of an array                in words, for teachers
    Recognised by `type`, expected `array`.       what the verdict finds

The order of the questions decides where two fit.
"""

import functools
import re
import sys
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from course_utils.errors import CourseError, nearest

SUFFIX = ".answers.md"
"""Of the file beside the module of a check, in place of `.py`."""
RIGHT, WRONG, UNASKED = "Right", "Wrong", "Rejected without a question"
_CODE = r"`([^`]+)`"
_EXCHANGE = re.compile(rf"(?:with {_CODE} → {_CODE}|without {_CODE}|with {_CODE} (before|after) {_CODE})")
_CHANGES = rf"{_EXCHANGE.pattern}(?:,? (?:and )?{_EXCHANGE.pattern})*"
_SMALL = re.compile(rf"`(?P<name>\w+)` is `(?P<base>\w+)` (?P<changes>{_CHANGES})\.\s*(?P<idea>.*)")
_INTRODUCTION = re.compile(r"`(?P<name>\w+)`(?: changes `(?P<base>\w+)`)?[:.]?\s*(?P<idea>.*)", re.DOTALL)


_FORMS = "`name` is `base` with `old` → `new`. Or `name` changes `base`: and a diff. Or `name`: and a python block"


@dataclass(frozen=True)
class Program:
    """A whole program that somebody writes for an exercise.

    Attributes:
        exercise: the name of the function that it defines.
        name: short, unique in its file.
        source: imports and all.
        idea: in words, what is special in it; "" where the change says it.
        base: the program of which it is a small change; "" where it is written whole.
    """

    exercise: str
    name: str
    source: str
    idea: str = ""
    base: str = ""

    def function(self) -> Callable:
        """The function that it defines, in a module of its own that travels to the ranks by value."""
        import cloudpickle

        module = types.ModuleType(f"written_{self.exercise}_{self.name}")
        module.__file__ = f"<{self.name}, written for {self.exercise}>"
        sys.modules[module.__name__] = module
        cloudpickle.register_pickle_by_value(module)
        exec(compile(self.source, module.__file__, "exec"), vars(module))
        return getattr(module, self.exercise)


@dataclass(frozen=True)
class Question:
    """A question, and the mistake that it leads out of.

    Attributes:
        text: never the answer; where nothing is asked, the mistake in words.
        programs: that make the mistake.
        recognised: how it is recognised where not by what its programs do: "when it hangs"; "" where by that.
        is_asked: whether the text is put to the learner.
    """

    text: str
    programs: tuple[Program, ...]
    recognised: str = ""
    is_asked: bool = True


@dataclass(frozen=True)
class Written:
    """All that people write for one exercise.

    Attributes:
        right: programs that a check must accept.
        questions: in the order in which their mistakes are looked for.
        unasked: rejected, and the verdict alone says why.
    """

    right: tuple[Program, ...] = ()
    questions: tuple[Question, ...] = ()
    unasked: tuple[Question, ...] = ()

    @property
    def wrong(self) -> tuple[tuple[Program, Question], ...]:
        """Every wrong program, with the question that leads out of its mistake, asked or not."""
        every = (*self.questions, *self.unasked)
        return tuple((program, question) for question in every for program in question.programs)

    @property
    def answers(self) -> tuple[Program, ...]:
        """What people hand in, right and wrong."""
        return (*self.right, *(program for program, _ in self.wrong))

    def program(self, name: str) -> Program:
        """The program of this name.

        Raises:
            CourseError: there is none; the text suggests the nearest.
        """
        programs = {each.name: each for each in self.answers}
        if name not in programs:
            raise CourseError(f"Nobody writes `{name}`.{nearest(name, list(programs))}")
        return programs[name]


@functools.cache
def written_in(file: Path) -> Written:
    """What stands in the file of an exercise; nothing where there is no file.

    Raises:
        CourseError: the file is not of the form above; the text says where.
    """
    if not file.exists():
        return Written()
    return _FileReader(file).written()


def patched(base: str, change: str) -> str:
    """A source with a change made in it: lines with "-" go, with "+" come, with " " stay; "@@" begins the next place.

    Raises:
        CourseError: what goes or stays is found nowhere, or at two places.
    """
    lines, found, begin = base.splitlines(), [], 0
    for piece in re.split(r"^@@.*\n?", change, flags=re.MULTILINE):
        marked = piece.splitlines()
        if not marked:
            continue
        old = [line[1:] for line in marked if not line.startswith("+")]
        places = [at for at in range(begin, len(lines) - len(old) + 1) if lines[at : at + len(old)] == old]
        if len(places) != 1 or not old:
            how = "nowhere" if not places else "at more than one place"
            raise CourseError(f"These lines stand {how} in the program that is changed:\n" + "\n".join(old))
        found += [*lines[begin : places[0]], *(line[1:] for line in marked if not line.startswith("-"))]
        begin = places[0] + len(old)
    return "\n".join([*found, *lines[begin:]]) + "\n"


def exchanged(base: str, changes: str) -> str:
    """A source with a few words changed in it, each change made in what the one before left.

    Args:
        base: the source.
        changes: "with `old` → `new`", "without `a whole line`", "with `a line more` before `a whole line`" or "after"
            it, or several of these. The line more is indented like the whole line, or, after one that ends with a
            colon, by four spaces more.

    Raises:
        CourseError: what is to go or to stay is found nowhere, or at two places.
    """
    lines = base.splitlines()
    for old, new, gone, more, side, neighbour in _EXCHANGE.findall(changes):
        if whole := gone or neighbour:
            places = [at for at, line in enumerate(lines) if line.strip() == whole]
        else:
            places = [at for at, line in enumerate(lines) for _ in range(line.count(old))]
        if len(places) != 1:
            how = "nowhere" if not places else "at more than one place"
            raise CourseError(f"`{whole or old}` stands {how} in the program that is changed")
        [at] = places
        line = lines[at]
        if gone:
            lines[at : at + 1] = []
        elif neighbour:
            indent = line[: -len(line.lstrip())] + " " * (4 * (side == "after" and line.endswith(":")))
            lines[at : at + 1] = [line, indent + more] if side == "after" else [indent + more, line]
        else:
            lines[at] = line.replace(old, new)
    return "\n".join(lines) + "\n"


@dataclass
class _Section:
    """What stands under one heading of the second or third level."""

    title: str
    programs: list[tuple[int, str, str, str, str]] = field(default_factory=list)
    recognised: str = ""


class _FileReader:
    """Reads one file: headings, paragraphs and fenced blocks; anything else is an error."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.exercise = file.name.removesuffix(SUFFIX)
        self.parts: dict[str, list[_Section]] = {}
        self._read(file.read_text(encoding="utf-8"))
        self.sources = {
            name: text
            for sections in self.parts.values()
            for section in sections
            for _, name, base, _, text in section.programs
            if not base
        }

    def written(self) -> Written:
        right = tuple(program for section in self.parts.get(RIGHT, ()) for program in self._programs(section))
        questions, unasked = (
            tuple(
                Question(section.title, tuple(self._programs(section)), section.recognised, part == WRONG)
                for section in self.parts.get(part, ())
                if section.title
            )
            for part in (WRONG, UNASKED)
        )
        found = Written(right, questions, unasked)
        names = [program.name for program in found.answers]
        for name in names:
            if names.count(name) > 1:
                raise CourseError(f"{self.file.name}: two programs are called `{name}`.")
        return found

    def _programs(self, section: _Section) -> Iterator[Program]:
        for line, name, base, idea, text in section.programs:
            if base and base not in self.sources:
                near = nearest(base, list(self.sources))
                raise self._error(
                    line, f"`{name}` changes `{base}`, which is neither written whole here nor right.{near}"
                )
            try:
                change = exchanged if _EXCHANGE.match(text) else patched
                source = change(self.sources[base], text) if base else text
            except CourseError as error:
                raise self._error(line, f"`{name}`: {error}") from None
            self.sources[name] = source
            yield Program(self.exercise, name, source, idea, base)

    def _read(self, text: str) -> None:
        lines = text.splitlines()
        paragraph: list[str] = []
        section = _Section("")
        part: list[_Section] = []
        at = 0
        while at < len(lines):
            line = lines[at]
            if line.startswith("```"):
                end = next((i for i in range(at + 1, len(lines)) if lines[i].startswith("```")), None)
                if end is None:
                    raise self._error(at, "this block has no end")
                self._block(section, at, line[3:], " ".join(paragraph), "\n".join(lines[at + 1 : end]) + "\n")
                paragraph, at = [], end
            elif line.startswith("## "):
                part = self.parts.setdefault(line[3:].strip(), [])
                section, paragraph = _Section(""), []
                part.append(section)
            elif line.startswith("### "):
                section, paragraph = _Section(line[4:].strip()), []
                part.append(section)
            elif line.startswith("Recognised ") and not paragraph:
                section.recognised = line.removeprefix("Recognised ").strip().removesuffix(".")
            elif not line.strip() or line.startswith("- "):
                self._paragraph(section, at - 1, " ".join(paragraph))
                paragraph = [line.removeprefix("- ").strip()] if line.strip() else []
            else:
                paragraph.append(line.strip())
            at += 1
        self._paragraph(section, at - 1, " ".join(paragraph))
        for name in self.parts:
            if name not in (RIGHT, WRONG, UNASKED):
                raise CourseError(f"{self.file.name}: no part is called {name!r}.")

    def _paragraph(self, section: _Section, at: int, text: str) -> None:
        small = _SMALL.fullmatch(text)
        if small:
            section.programs.append((at, small["name"], small["base"], small["idea"], small["changes"]))
        elif text.startswith("`"):
            raise self._error(at, f"expected {_FORMS}")

    def _block(self, section: _Section, at: int, language: str, before: str, text: str) -> None:
        introduction = _INTRODUCTION.fullmatch(before)
        if not introduction or language != ("diff" if introduction["base"] else "python"):
            raise self._error(at, f"expected {_FORMS}")
        section.programs.append((at, introduction["name"], introduction["base"] or "", introduction["idea"], text))

    def _error(self, at: int, what: str) -> CourseError:
        return CourseError(f"{self.file.name}, line {at + 1}: {what}")
