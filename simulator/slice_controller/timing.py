"""How long the controller waits, and how a faster region shortens it.

The contract's timers are constants of the real controller; TPU_SLICES_TIME_SCALE divides them, down to floors
that a loaded machine of two cores keeps: a Slice that forms in a second must not be called stale.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

TIME_SCALE_VARIABLE = "TPU_SLICES_TIME_SCALE"


@dataclass(frozen=True, kw_only=True)
class Timing:
    """Seconds, of this machine."""

    slice_event_batch: float = 1.0
    cleanup_retry: float = 5.0
    initialization_retry: float = 5.0
    finalizer_conflict_retry: float = 0.005
    activation_timeout: float = 180.0
    retry_delay: int = 10
    lease_duration: float = 15.0
    lease_renew_deadline: float = 10.0
    lease_retry: float = 2.0

    @classmethod
    def of(cls, *, activation_timeout: float, retry_delay: float, scale: float = 1.0) -> Timing:
        """The timers at that scale; the retry delay is a whole number of seconds, as Kueue reads it."""

        def scaled(seconds: float, floor: float) -> float:
            return max(seconds / scale, min(seconds, floor))

        return cls(
            slice_event_batch=scaled(1.0, 0.05),
            cleanup_retry=scaled(5.0, 0.3),
            initialization_retry=scaled(5.0, 0.5),
            activation_timeout=scaled(activation_timeout, 20.0),
            retry_delay=int(scaled(retry_delay, 1.0) + 0.5),
            lease_duration=scaled(15.0, 10.0),
            lease_renew_deadline=scaled(10.0, 8.0),
            lease_retry=scaled(2.0, 0.5),
        )


def time_scale(environment: Mapping[str, str]) -> float:
    """The scale in the environment; 1 when there is none, `inf` for as fast as possible."""
    text = environment.get(TIME_SCALE_VARIABLE) or "1"
    try:
        scale = float(text)
    except ValueError:
        scale = 0.0
    if not scale > 0:
        raise ValueError(
            f"{TIME_SCALE_VARIABLE} must be a positive number (got {text!r}): waits are divided by it. Use 1 for real time."
        )
    return scale
