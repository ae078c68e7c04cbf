"""Kueue's objects as plain manifests, computed from the cubes that a stack holds.

Owns what the codelab's step 5 applies: Topology, ResourceFlavor, AdmissionCheck, ClusterQueue, LocalQueue and
WorkloadPriorityClass, all at v1beta2 (the codelab's priority classes are still v1beta1). Quotas are what the hosts
have, where the codelab writes 999999 and so lets work queue on hosts that do not exist. Refuses every namespace
that is not named.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from facts import hosts, labels, tpu

API_VERSION = "kueue.x-k8s.io/v1beta2"
TOPOLOGY = "slice-topology"
RESOURCE_FLAVOR = "slice-rf"
ADMISSION_CHECK = "ac"

Manifest = dict[str, Any]


def quantity(value: int, *, base: int) -> str:
    """A Kubernetes quantity in the one spelling that the API's own types write (base 1000: `8k`; 1024: `9Ti`).

    Kueue's webhooks decode and encode what they admit; any other spelling would come back different and show up as
    a change for ever.
    """
    suffixes = ("", "k", "M", "G", "T", "P", "E") if base == 1000 else ("Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
    power = 0
    while value and value % base == 0 and power < len(suffixes) - 1:
        value //= base
        power += 1
    return f"{value}{suffixes[power]}"


def topology() -> Manifest:
    """The levels of a tpu7x block, widest first; the slice controller reads the last one to find hosts.

    Immutable, and a node that lacks the label of any level is outside the tree.
    """
    keys = [
        labels.TOPOLOGY_BLOCK,
        *(labels.partition_id(shape) for shape in tpu.PARTITION_LEVELS),
        labels.HOSTNAME,
    ]
    return _object("Topology", TOPOLOGY, {"levels": [{"nodeLabel": key} for key in keys]})


def resource_flavor() -> Manifest:
    """The tpu7x hosts. It brings the toleration along, which the codelab leaves to every pod."""
    return _object(
        "ResourceFlavor",
        RESOURCE_FLAVOR,
        {
            "nodeLabels": {labels.TPU_ACCELERATOR: tpu.TPU7X},
            "tolerations": [
                {
                    "key": labels.TPU_TAINT,
                    "operator": "Equal",
                    "value": labels.TPU_TAINT_VALUE,
                    "effect": labels.TPU_TAINT_EFFECT,
                }
            ],
            "topologyName": TOPOLOGY,
        },
    )


def admission_check() -> Manifest:
    """The question to the slice controller: are this workload's slices active?"""
    return _object("AdmissionCheck", ADMISSION_CHECK, {"controllerName": labels.ADMISSION_CHECK_CONTROLLER})


def cluster_queue(name: str, cube_count: int, namespaces: Sequence[str]) -> Manifest:
    """The one queue over all cubes, open to the named namespaces."""
    host_count = cube_count * tpu.HOSTS_PER_CUBE
    host = hosts.TPU7X_STANDARD_4T
    quota = {
        labels.TPU_RESOURCE: quantity(cube_count * tpu.CHIPS_PER_CUBE, base=1000),
        # Covered because pods ask for them: a resource without quota in the group never fits.
        "cpu": quantity(host_count * host.cpu_millis // 1000, base=1000),
        "memory": quantity(host_count * host.memory_kib // 1024**2 * 1024**2, base=1024),
    }
    return _object(
        "ClusterQueue",
        name,
        {
            # The codelab's empty selector lets every namespace in.
            "namespaceSelector": namespace_selector(namespaces),
            "admissionChecksStrategy": {"admissionChecks": [{"name": ADMISSION_CHECK}]},
            "preemption": {"withinClusterQueue": "LowerPriority"},
            "resourceGroups": [
                {
                    "coveredResources": list(quota),
                    "flavors": [
                        {
                            "name": RESOURCE_FLAVOR,
                            "resources": [
                                {"name": resource, "nominalQuota": amount}
                                for resource, amount in quota.items()
                            ],
                        }
                    ],
                }
            ],
        },
    )


def local_queue(name: str, namespace: str, queue: str) -> Manifest:
    """The door of a namespace to the ClusterQueue."""
    manifest = _object("LocalQueue", name, {"clusterQueue": queue})
    manifest["metadata"]["namespace"] = namespace
    return manifest


def workload_priority_class(name: str, value: int) -> Manifest:
    """A priority that a workload carries by name."""
    return {
        "apiVersion": API_VERSION,
        "kind": "WorkloadPriorityClass",
        "metadata": {"name": name},
        "value": value,
        "description": f"Workloads of priority {value}; a higher one may preempt a lower one.",
    }


def namespace_selector(namespaces: Sequence[str]) -> Mapping[str, Any]:
    """Selects exactly the named namespaces, by the label that Kubernetes itself keeps on them."""
    return {
        "matchExpressions": [
            {"key": labels.NAMESPACE_NAME, "operator": "In", "values": sorted(set(namespaces))}
        ]
    }


def _object(kind: str, name: str, spec: Mapping[str, Any]) -> Manifest:
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": dict(spec)}
