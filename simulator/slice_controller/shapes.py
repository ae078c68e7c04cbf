"""TPU topologies as the slice controller reads them, with its own words of refusal.

`facts.tpu` says what the hardware can form and explains it to people. The controller is laxer (no upper limit,
no check that the text starts and ends with digits) and its texts are a contract, so they stand here.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from facts import labels
from facts.tpu import CHIPS_PER_CUBE, CUBE, SUB_SLICE_SHAPES


@dataclass(frozen=True)
class Shape:
    """A topology that the controller accepts."""

    text: str
    dimensions: tuple[int, int, int]

    @property
    def is_sub_slice(self) -> bool:
        return self.text in SUB_SLICE_SHAPES

    @property
    def _partition_shape(self) -> str:
        return self.text if self.is_sub_slice else CUBE

    @property
    def partition_id_label(self) -> str:
        """The node label that is the Kueue level of one partition, and whose values a Slice lists."""
        return labels.partition_id(self._partition_shape)

    @property
    def health_label(self) -> str:
        return labels.partition_state(self._partition_shape)

    @property
    def chips_per_partition(self) -> int:
        return prod(self.dimensions) if self.is_sub_slice else CHIPS_PER_CUBE

    @property
    def partition_count(self) -> int:
        return 1 if self.is_sub_slice else _truncated(prod(self.dimensions), CHIPS_PER_CUBE)

    def pods_per_partition(self, parallelism: int) -> int:
        """Pods of one partition; for a super-slice the rest of the division is dropped, as the controller does."""
        return parallelism if self.is_sub_slice else _truncated(parallelism, self.partition_count)


def parse(text: str) -> Shape:
    """The shape of that text; `ValueError` with the controller's words otherwise."""
    parts = text.split("x")
    if len(parts) != 3:
        raise ValueError(f"invalid topology format: {text}, expected 3 dimensions")
    a, b, c = (_number(part) for part in parts)
    shape = Shape(text, (a, b, c))
    if shape.is_sub_slice:
        return shape
    if 0 in shape.dimensions:
        raise ValueError(f"topology dimensions cannot be zero: {text}")
    if a % 4 or b % 4 or c % 4:
        raise ValueError(f"topology dimensions must be divisible by 4: {text}")
    if a > b or b > c:
        raise ValueError(f"topology dimensions must be in non-decreasing order: {text}")
    return shape


def _number(text: str) -> int:
    digits = text[1:] if text[:1] in {"+", "-"} else text
    if not (digits.isascii() and digits.isdigit()):
        raise ValueError(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    number = int(text)
    if not -(2**31) <= number < 2**31:
        raise ValueError(f'strconv.ParseInt: parsing "{text}": value out of range')
    return number


def _truncated(dividend: int, divisor: int) -> int:
    quotient = abs(dividend) // abs(divisor)
    return quotient if (dividend < 0) == (divisor < 0) else -quotient
