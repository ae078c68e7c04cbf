"""What `make up` says at the end: what a person has now, read from the running cluster, not from the plan."""

from __future__ import annotations

from collections import Counter
from typing import Any

from kubernetes import client, config

from facts import labels
from simulator.engine import Engine
from simulator.region_folder import RegionFolder

CONTROLLER_NAMESPACES = ("jobset-system", "kueue-system", "lws-system", "slice-controller-system")


def summarize(region: RegionFolder, engine: Engine, seconds: float) -> str:
    """A short table: kubeconfig, hosts, cubes, controllers, queues, and how to go on."""
    api = config.new_client_from_config(str(region.kubeconfig))
    core, apps, custom = client.CoreV1Api(api), client.AppsV1Api(api), client.CustomObjectsApi(api)
    nodes = core.list_node().items
    rows = [
        ("stack", f"{engine.stack}, {engine.resource_count()} resources, up in {seconds:.0f} s"),
        ("kubeconfig", str(region.kubeconfig)),
        ("hosts", _hosts(nodes)),
        ("cubes", _cubes(nodes)),
        ("controllers", _controllers(apps)),
        ("APIs", _aggregated_apis(api)),
        ("queues", _queues(custom)),
        ("logs", str(region.logs)),
    ]
    width = max(len(name) for name, _ in rows)
    lines = [f"{name:{width}}  {value}" for name, value in rows if value]
    lines += [
        "",
        'by hand:  eval "$(make -s env)"; pulumi preview; kubectl get nodes',
        "prove it: make verify",
        "stop it:  make down",
    ]
    return "\n".join(lines)


def _is_true(conditions: Any, kind: str) -> bool:
    return any(each.type == kind and each.status == "True" for each in conditions or [])


def _hosts(nodes: list[Any]) -> str:
    tpu = [node for node in nodes if labels.TPU_ACCELERATOR in node.metadata.labels]
    ready = sum(_is_true(node.status.conditions, "Ready") for node in tpu)
    kinds = Counter(node.metadata.labels[labels.TPU_ACCELERATOR] for node in tpu)
    named = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
    return f"{ready} of {len(tpu)} TPU hosts Ready ({named}), {len(nodes) - len(tpu)} system nodes"


def _cubes(nodes: list[Any]) -> str:
    key = labels.partition_id("4x4x4")
    state = labels.partition_state("4x4x4")
    found: dict[str, tuple[str, str, str]] = {}
    for node in nodes:
        has = node.metadata.labels
        if key in has:
            found[has[key]] = (
                has[labels.NODE_POOL],
                has.get(labels.TOPOLOGY_BLOCK, "?"),
                has.get(state, "?"),
            )
    return ", ".join(f"{pool} ({block}, {health})" for pool, block, health in sorted(found.values()))


def _controllers(apps: client.AppsV1Api) -> str:
    said = []
    for namespace in CONTROLLER_NAMESPACES:
        for deployment in apps.list_namespaced_deployment(namespace).items:
            ready, wanted = deployment.status.ready_replicas or 0, deployment.spec.replicas
            said.append(f"{namespace.removesuffix('-system')} {ready}/{wanted}")
    return ", ".join(said)


def _aggregated_apis(api: Any) -> str:
    services = client.ApiregistrationV1Api(api).list_api_service().items
    remote = [each for each in services if each.spec.service is not None]
    available = sum(_is_true(each.status.conditions, "Available") for each in services)
    return f"{available} of {len(services)} Available ({len(remote)} served by controllers)"


def _queues(custom: client.CustomObjectsApi) -> str:
    try:
        queues = custom.list_cluster_custom_object("kueue.x-k8s.io", "v1beta2", "clusterqueues")["items"]
    except client.ApiException:
        return ""
    said = []
    for queue in queues:
        active = next(
            (each for each in queue.get("status", {}).get("conditions", []) if each["type"] == "Active"), None
        )
        is_active = active is not None and active["status"] == "True"
        why = "" if is_active or active is None else f": {active['message']}"
        said.append(f"{queue['metadata']['name']} ({'active' if is_active else 'not active'}{why})")
    return ", ".join(said)
