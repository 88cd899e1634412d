"""The twenty lessons: what each asks, how long it takes, how many ranks it needs, and what is planned for it."""

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

PART_2 = "_part_2"
"""How the name of the second page of a lesson that has two ends: `11_hybrid_and_sharded_part_2`."""

FURTHER = "_further"
"""How the name of a lesson's optional notebook ends: `05_allreduce_further`."""


@dataclass(frozen=True, slots=True)
class SecondPage:
    """The second page of a lesson that takes two evenings: the question it answers, and its minutes."""

    title: str
    minutes: int


@dataclass(frozen=True, slots=True)
class Lesson:
    """One lesson of the course.

    Args:
        stem: the name its notebook, exercises, slides and tests share, "04_messages".
        title: the question the lesson answers.
        minutes: for its page at an easy pace; exercises say their own. `workshop.publish.minutes` estimates them.
        ranks: how many processes its page works with, 0 for none.
        builds_on: the lessons that it continues, by number; what those build on goes without saying.
        planned: the exercises it will have; empty once they are declared, in the folder `checks` of its room.
        part_2: its second page, for a lesson that has two.
        further_minutes: for its notebook *Further*, which is optional; 0 if it has none.
    """

    stem: str
    title: str
    minutes: int
    ranks: int
    builds_on: tuple[int, ...] = ()
    planned: tuple[str, ...] = ()
    part_2: SecondPage | None = None
    further_minutes: int = 0

    @property
    def number(self) -> int:
        """The lesson's place in the course, from 0."""
        return int(self.stem[:2])

    @property
    def subject(self) -> str:
        """What its modules are named after: the stem without its number, "messages"."""
        return self.stem.partition("_")[2]

    @property
    def package(self) -> str:
        """The room of the package that holds all that only this lesson needs, "course_utils.lessons.messages"."""
        return f"course_utils.lessons.{self.subject}"

    @property
    def room(self) -> Path:
        """The folder of that room."""
        return ROOT.joinpath(*self.package.split("."))

    @property
    def notebook(self) -> Path:
        """Where the lesson's notebook stands once it is written."""
        return ROOT / "notebooks" / f"{self.stem}.ipynb"

    @property
    def second_notebook(self) -> Path | None:
        """Where the lesson's second page is, or None if it has one page only."""
        return ROOT / "notebooks" / f"{self.stem}{PART_2}.ipynb" if self.part_2 else None

    @property
    def minutes_of_pages(self) -> int:
        """The minutes of its page, or of both its pages."""
        return self.minutes + (self.part_2.minutes if self.part_2 else 0)

    @property
    def further(self) -> Path | None:
        """The lesson's optional notebook, or None if it has none."""
        return ROOT / "notebooks" / f"{self.stem}{FURTHER}.ipynb" if self.further_minutes else None

    @property
    def further_title(self) -> str:
        """The title of that notebook."""
        return f"Further: {self.title[0].lower()}{self.title[1:]}"

    @property
    def notebooks(self) -> tuple[Path, ...]:
        """The lesson's notebooks without its exercises, in the order of reading."""
        return tuple(path for path in (self.notebook, self.second_notebook, self.further) if path)

    @property
    def written(self) -> bool:
        """Whether the lesson can be opened already."""
        return self.notebook.exists()


LESSONS: tuple[Lesson, ...] = (
    Lesson("00_first_steps", "How do I run code on many processes?", 40, 4),
    Lesson("01_sgd", "How does a network learn?", 50, 0, (0,), further_minutes=30),
    Lesson("02_autodiff_and_optimizers", "Who computes the gradient?", 50, 0, (1,), further_minutes=20),
    Lesson("03_hardware", "What limits one machine?", 45, 0, (2,), further_minutes=45),
    Lesson("04_messages", "How do processes talk?", 50, 4, (0,), further_minutes=25),
    Lesson("05_allreduce", "How do P machines add up their vectors?", 50, 8, (4,), further_minutes=80),
    Lesson("06_data_parallel", "Can P workers train as one?", 50, 4, (2, 5), further_minutes=40),
    Lesson("07_overlap", "Why is DDP faster than my loop?", 55, 4, (6,), further_minutes=65),
    Lesson("08_parameter_server", "What if nobody waits?", 50, 8, (6,), further_minutes=90),
    Lesson("09_model_parallel", "What if the model does not fit?", 50, 4, (6,), further_minutes=50),
    Lesson("10_pipeline", "How are all stages kept busy?", 50, 4, (9,), further_minutes=70),
    Lesson(
        "11_hybrid_and_sharded",
        "Which mixture?",
        45,
        4,
        (7, 10),
        part_2=SecondPage("Why keep everything P times?", 50),
        further_minutes=95,
    ),
    Lesson("12_strategy_search", "Can the machine choose for us?", 55, 2, (11,), further_minutes=80),
    Lesson(
        "13_gpu_nodes",
        "From four processes to forty GPUs?",
        50,
        4,
        (7,),
        part_2=SecondPage("How fast are one GPU and its network?", 50),
        further_minutes=75,
    ),
    Lesson("14_profiling", "Where did the time go?", 55, 4, (3, 7), further_minutes=40),
    Lesson("15_read_the_manual", "Can I now read any framework's manual?", 50, 4, (8, 12, 13, 14), further_minutes=50),
    Lesson("16_experts", "What if only some weights are used?", 50, 4, (11,), further_minutes=60),
    Lesson("17_long_texts", "What if the text does not fit?", 50, 4, (9,), further_minutes=50),
    Lesson("18_failures", "What if a rank dies?", 55, 4, (11, 13), further_minutes=25),
    Lesson("19_inference", "What does one answer cost?", 55, 4, (3, 9), further_minutes=30),
)


def lesson_of(stem: str) -> str:
    """Return the stem of the lesson that a page belongs to: "05_allreduce" for "05_allreduce_further", too."""
    return stem.removesuffix(FURTHER).removesuffix(PART_2)
