"""Pathways layouts: which model runs on how many slices of which shape.

Owns the two layouts of Google's tutorial on multi-host serving (kubernetes-engine-samples
ai-ml/llm-serving-tpus-jetstream/pathways, seen 2026-12-01). Refuses other combinations: their MaxText arguments
would have to be measured first.
"""

from dataclasses import dataclass
from typing import Final

from facts import tpu

STAGING_BUCKET: Final = "cloud-pathways-staging"
"""Google's own bucket, which the tutorial's disaggregated manifest still names."""


@dataclass(frozen=True, kw_only=True)
class Layout:
    """A model on static v6e slices."""

    model: str
    topology: str
    slice_count: int

    @property
    def host_count(self) -> int:
        """Hosts of all slices: the workers of the LeaderWorkerSet."""
        return self.slice_count * tpu.static_host_count("ct6e-standard-4t", self.topology)

    @property
    def group_size(self) -> int:
        """Pods of the LeaderWorkerSet: one leader without chips, and one worker a host."""
        return 1 + self.host_count

    @property
    def instance_type(self) -> str:
        """What the resource manager calls a slice."""
        return f"tpuv6e:{self.topology}"


LAYOUTS: Final = {
    "single": Layout(model="Llama 3.1 405B", topology="4x4", slice_count=1),
    "disaggregated": Layout(model="Llama 2 70B", topology="2x4", slice_count=2),
}
