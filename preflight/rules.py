"""Every rule that joins sections, with the sections it reads."""

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

from facts.refusal import Refusal

Found = Iterator[tuple[str, Refusal]]
Rule = Callable[[Any, datetime], Found]
ALL: list[tuple[frozenset[str], Rule]] = []
