"""`python -m ops import-map STACK`: the file by which `pulumi import` adopts a platform that scripts have made.

Owns which resources are adopted (cluster, workload policy, cubes), and their ids, all from the plan of the stack; so
the map cannot name what the program would not register. Everything else is either made beside it (the node account,
the system pool, controllers, queues) or given (`network.existing`).
Refuses a stack whose plan would replace what it adopts: its own network, or pools that are not `adopted`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ops import render, stacks

if TYPE_CHECKING:
    from ops.recording import Recording, Registration
    from settings import Settings

HELP = "the file for `pulumi import --file` that adopts what the codelab's scripts have made"
_POLICY = "gcp:compute/resourcePolicy:ResourcePolicy"
_CLUSTER = "gcp:container/cluster:Cluster"
_POOL = "gcp:container/nodePool:NodePool"
_CUBES = "tpu-slices:index:SupersliceNodePools"
_STACK = "pulumi:pulumi:Stack"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.add_argument("stack", metavar="STACK", help="name of the stack")
    parser.add_argument(
        "--config-file", type=Path, metavar="FILE", help="read this file, not Pulumi.STACK.yaml"
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the map; the exit code."""
    try:
        problems = obstacles(stacks.load_settings(arguments.stack, arguments.config_file))
        if problems:
            print("\n".join(problems), file=sys.stderr)
            return 1
        found = import_map(render.plan(arguments.stack, arguments.config_file))
    except (stacks.StackError, render.RenderError) as error:
        print(error, file=sys.stderr)
        return 1
    json.dump(found, sys.stdout, indent=2)
    print()
    return 0


def obstacles(settings: Settings) -> list[str]:
    """What in the settings would make the first `up` after the import replace something."""
    found = []
    if not settings.slice_pools:
        found.append(
            "`slicePools` must not be empty: the codelab made cubes, and there is nothing else to adopt."
        )
    if settings.network.existing is None:
        found.append(
            "`network.existing` must be given: the codelab's cluster stands on ranges that GKE chose in that network, and "
            "ours would replace the cluster. Set {network: qwen-serving-main, subnet: qwen-serving-tpu, proxySubnet: true}."
        )
    found += [
        f"`slicePools[{index}].adopted` must be true: account, scopes and shielding of the nodes cannot change in place, "
        "and ours would replace every pool."
        for index, pool in enumerate(settings.slice_pools)
        if not pool.adopted
    ]
    return found


def import_map(recording: Recording) -> dict[str, Any]:
    """What `pulumi import --file` takes: provider and components first, then the resources with their ids."""
    adopted = [each for each in recording.registrations.values() if _is_adopted(each, recording)]
    above = _above(adopted, recording)
    names = {each.urn: each.name for each in [*above, *adopted]}
    return {"resources": [_entry(each, names) for each in [*above, *adopted]]}


def _is_adopted(registration: Registration, recording: Recording) -> bool:
    if registration.type_token == _POOL:
        parent = recording.registrations[str(registration.parent)]
        return parent.type_token == _CUBES
    return registration.type_token in (_CLUSTER, _POLICY)


def _above(adopted: list[Registration], recording: Recording) -> list[Registration]:
    """Providers and components of the adopted, each once, in the order in which they were registered."""
    wanted = {urn for each in adopted for urn in (each.provider, each.parent)}
    return [
        each for urn, each in recording.registrations.items() if urn in wanted and each.type_token != _STACK
    ]


def _entry(registration: Registration, names: Mapping[str, str]) -> dict[str, Any]:
    entry: dict[str, Any] = {"type": registration.type_token, "name": registration.name}
    if registration.type_token.startswith("pulumi:providers:"):
        return {**entry, "inputs": registration.inputs}
    if (parent := registration.parent or "") in names:
        entry["parent"] = names[parent]
    if registration.type_token.startswith("tpu-slices:"):
        return {**entry, "component": True}
    provider = str(registration.provider)
    return {**entry, "id": resource_id(registration), "provider": names[provider]}


def resource_id(registration: Registration) -> str:
    """Its id in the cloud, which follows from what the plan says of it."""
    inputs = registration.inputs
    project, name = inputs["project"], inputs["name"]
    if registration.type_token == _POLICY:
        return f"projects/{project}/regions/{inputs['region']}/resourcePolicies/{name}"
    if registration.type_token == _CLUSTER:
        return f"projects/{project}/locations/{inputs['location']}/clusters/{name}"
    # The provider's own short form for a pool has no `projects/`, `locations/`.
    return f"{project}/{inputs['location']}/{inputs['cluster']}/{name}"
