"""What a simulated workload's container prints, for `kubectl logs` and `make verify`.

Derived from where the pod really landed: the chips of its own host come from its resource limits, the chips of
its slice from the topology label that the add-on put on its node. Nothing here knows what a test expects. A pod
on a host without a slice prints what libtpu would be unable to do (assumed wording), and no device count.
"""

from __future__ import annotations

from typing import Any

from facts import labels, tpu


def lines(pod: dict[str, Any], container: dict[str, Any], node: dict[str, Any] | None) -> list[str]:
    """The lines of `container`'s log. One JAX device is one TensorCore: two a chip on tpu7x, one on v6e."""
    said = [f"simulated: container {container['name']} of image {container['image']} runs nowhere"]
    chips = int((container.get("resources", {}).get("limits") or {}).get(labels.TPU_RESOURCE, 0))
    if chips == 0 or node is None:
        return said
    node_labels = node["metadata"].get("labels") or {}
    topology = node_labels.get(labels.TPU_TOPOLOGY)
    slice_name = node_labels.get(labels.TPU_SLICE)
    is_dynamic = node_labels.get(labels.TOPOLOGY_MODE) == labels.TOPOLOGY_MODE_PROVISION_ONLY
    said.append(
        f"simulated: host {node['metadata']['name']}, slice {slice_name or '(none)'}, topology {topology}"
    )
    if topology is None or (is_dynamic and slice_name is None):
        said.append("simulated: TPU initialization failed: this host belongs to no active slice")
        return said
    machine = tpu.MACHINES.get(node_labels.get(labels.INSTANCE_TYPE, ""))
    devices_per_chip = machine.devices_per_chip if machine is not None else 1
    all_chips = tpu.chip_count(topology)
    said.append(
        f"Global device count: {all_chips * devices_per_chip} Local device count: {chips * devices_per_chip}"
    )
    return said
