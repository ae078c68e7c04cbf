"""Operations that fail because a test (or a curious person) asks for it.

Faults come from the region file and from `faults.json` in the region's folder, a list of the same form that may
change while the region runs: `[{"operation": "create", "resource": "tpu7-pool-1", "failsWith": "stockout",
"times": 1}]`. How often each has struck is kept in the inventory, so that a restart does not start over.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from simulator.cloud.errors import GoogleRefusal, OperationFailed, ProviderRefusal, Refusal
from simulator.cloud.inventory import Inventory
from simulator.cloud.operations import OperationKind
from simulator.cloud.region_file import Fault
from simulator.files import read_json

_FAULTS = TypeAdapter(list[Fault])


class Faults:
    """The faults that wait for an operation."""

    def __init__(self, path: Path, from_region: Iterable[Fault], inventory: Inventory) -> None:
        self._path = path
        self._from_region = list(from_region)
        self._inventory = inventory

    def take(self, operation: OperationKind, token: str, resource_id: str) -> Fault | None:
        """The fault that strikes this operation now, if one does; it is counted."""
        for fault in [*self._from_region, *self._from_file()]:
            if fault.operation != operation or not _names(fault.resource, token, resource_id):
                continue
            key = f"{fault.operation} {fault.resource} {fault.fails_with}"
            count = self._inventory.fault_counts.get(key, 0)
            if fault.times is not None and count >= fault.times:
                continue
            self._inventory.fault_counts[key] = count + 1
            self._inventory.save()
            return fault
        return None

    def _from_file(self) -> list[Fault]:
        document = read_json(self._path)
        if document is None:
            return []
        try:
            return _FAULTS.validate_python(document)
        except ValidationError as error:
            raise ProviderRefusal(
                f"{self._path} is no list of faults: {error}. Correct or remove it."
            ) from None


def _names(wanted: str, token: str, resource_id: str) -> bool:
    return wanted in (token, resource_id, resource_id.rsplit("/", 1)[-1])


def refusal(fault: Fault, resource_id: str) -> Refusal:
    """What Google says when this fault strikes."""
    name = resource_id.rsplit("/", 1)[-1]
    if fault.fails_with == "quota":
        # Wording: quota errors of the GKE API, as users quote them.
        return GoogleRefusal(
            f"Insufficient regional quota to satisfy request: resource \"{name}\": request requires '1.0' and is "
            "short '1.0'. project has a quota of '0.0' with '0.0' available",
            403,
            "forbidden",
        )
    if fault.fails_with == "permission":
        # Wording: IAM's answer in the Compute and Container APIs.
        return GoogleRefusal(
            f"Required permission '{fault.operation}' for '{resource_id}' is missing", 403, "forbidden"
        )
    if fault.fails_with == "stockout":
        # Wording: Compute Engine's ZONE_RESOURCE_POOL_EXHAUSTED, as users quote it; GKE passes it on.
        return OperationFailed(
            f"Google Compute Engine: The zone does not have enough resources available to fulfill the request for "
            f"{name}. Try a different zone, or try again later. (GCE out of resources)",
            leaves_resource=True,
        )
    # Wording: the Terraform SDK's state waiter, which the real provider is built on.
    return ProviderRefusal(
        f"Error waiting for {fault.operation} of {name}: timeout while waiting for state to become 'DONE' (last "
        "state: 'RUNNING')"
    )
