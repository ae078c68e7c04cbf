"""GKE's side of dynamic slicing, simulated: the slice controller add-on, the partition labels, and Warden's TPU check.

The state machine (`lifecycle`), the partitions (`hosts`) and the refusals (`admission`) are pure; the rest reads and
writes the cluster. The user-space slice controller, which makes Slices out of Kueue's Workloads, is another program.
"""

from simulator.addon.service import Addon

__all__ = ["Addon"]
