"""Problems: a path and a sentence, gathered into one error.

Owns the text that a person reads when a stack is refused. Refuses nothing itself.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from facts.refusal import Refusal, hidden

NAMESPACE = "tpu-slices"


@dataclass(frozen=True)
class Problem:
    """What is wrong, where: `path` as a person types it, `sentence` from "must" on."""

    path: str
    sentence: str

    def __str__(self) -> str:
        return hidden(f"`{self.path}` {self.sentence}")


def at(path: str, refusal: Refusal) -> Problem:
    """The problem at a path inside our own namespace."""
    return Problem(f"{NAMESPACE}:{path}", str(refusal))


class SettingsError(ValueError):
    """Every problem of a stack's settings."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        """Keeps the order in which a person would meet them; the same problem is said once."""
        self.problems = tuple(dict.fromkeys(problems))
        count = len(self.problems)
        head = "1 problem" if count == 1 else f"{count} problems"
        lines = [f"{head} in the settings of this stack; nothing was registered."]
        lines += [f"  - {problem}" for problem in self.problems]
        super().__init__("\n".join(lines))
