"""The stages by which KWOK plays nodes and pods: ours, not KWOK's stock ones.

The stock stages complete every Job's pod at once; a TPU job runs until it is preempted or deleted, so here a
pod stays Running. Pods whose images run as local processes are left alone.
"""

from __future__ import annotations

import json
from typing import Any

import yaml

from simulator.cluster.programs import IMAGE_NAMES

_RUNS_AS_PROCESS = (
    f'[.spec.containers[].image | test("(^|/)({"|".join(IMAGE_NAMES)})(:[^/@]*)?(@.*)?$")] | any'
)

_NODE_STATUS = """\
{{ $now := Now }}
{{ $lastTransitionTime := or .metadata.creationTimestamp $now }}
conditions:
{{ range NodeConditions }}
- lastHeartbeatTime: {{ $now | Quote }}
  lastTransitionTime: {{ $lastTransitionTime | Quote }}
  message: {{ .message | Quote }}
  reason: {{ .reason | Quote }}
  status: {{ .status | Quote }}
  type: {{ .type | Quote }}
{{ end }}
addresses:
- address: {{ NodeIP | Quote }}
  type: InternalIP
- address: {{ .metadata.name | Quote }}
  type: Hostname
daemonEndpoints:
  kubeletEndpoint:
    Port: {{ NodePort }}
allocatable:
{{ YAML .status.allocatable 1 }}
capacity:
{{ YAML .status.capacity 1 }}
phase: Running
"""

_POD_RUNNING = """\
{{ $now := Now }}
conditions:
- {type: Initialized, status: "True", lastTransitionTime: {{ $now | Quote }}}
- {type: Ready, status: "True", lastTransitionTime: {{ $now | Quote }}}
- {type: ContainersReady, status: "True", lastTransitionTime: {{ $now | Quote }}}
{{ range .spec.readinessGates }}
- lastTransitionTime: {{ $now | Quote }}
  status: "True"
  type: {{ .conditionType | Quote }}
{{ end }}
containerStatuses:
{{ range .spec.containers }}
- image: {{ .image | Quote }}
  name: {{ .name | Quote }}
  ready: true
  started: true
  restartCount: 0
  state:
    running:
      startedAt: {{ $now | Quote }}
{{ end }}
{{ if .spec.initContainers }}
initContainerStatuses:
{{ range .spec.initContainers }}
- image: {{ .image | Quote }}
  name: {{ .name | Quote }}
  ready: true
  restartCount: 0
  {{ if eq .restartPolicy "Always" }}
  started: true
  state:
    running:
      startedAt: {{ $now | Quote }}
  {{ else }}
  state:
    terminated:
      exitCode: 0
      finishedAt: {{ $now | Quote }}
      reason: Completed
      startedAt: {{ $now | Quote }}
  {{ end }}
{{ end }}
{{ end }}
{{ $podIPs := PodIPsWith .spec.nodeName ( or .spec.hostNetwork false ) ( or .metadata.uid "" ) ( or .metadata.name "" ) ( or .metadata.namespace "" ) }}
{{ with $podIPs }}
podIP: {{ index . 0 | Quote }}
podIPs:
{{ range . }}
- ip: {{ . | Quote }}
{{ end }}
{{ end }}
phase: Running
startTime: {{ $now | Quote }}
"""

_READY = '.status.conditions.[] | select( .type == "Ready" ) | .status'


def _stage(name: str, kind: str, expressions: list[dict[str, Any]], **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": "Stage",
        "metadata": {"name": name},
        "spec": {
            "resourceRef": {"apiGroup": "v1", "kind": kind},
            "selector": {"matchExpressions": expressions},
            **spec,
        },
    }


def _expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, **({"values": list(values)} if values else {})}


def stages() -> list[dict[str, Any]]:
    """Every stage: a node becomes Ready and stays so, a pod runs until deleted."""
    simulated = _expression(_RUNS_AS_PROCESS, "NotIn", "true")
    alive = _expression(".metadata.deletionTimestamp", "DoesNotExist")
    return [
        _stage(
            "node-becomes-ready",
            "Node",
            [_expression(_READY, "NotIn", "True")],
            next={"statusTemplate": _NODE_STATUS},
        ),
        _stage(
            "node-stays-ready",
            "Node",
            [_expression(".status.phase", "In", "Running"), _expression(_READY, "In", "True")],
            # The lease tells the controller manager that a node lives; this only renews the times shown.
            delay={"durationMilliseconds": 300_000, "jitterDurationMilliseconds": 360_000},
            next={"statusTemplate": _NODE_STATUS},
        ),
        _stage(
            "pod-runs",
            "Pod",
            [
                simulated,
                alive,
                _expression(".status.phase", "In", "Pending"),
                _expression(_READY, "NotIn", "True"),
            ],
            next={"statusTemplate": _POD_RUNNING},
        ),
        _stage(
            "pod-goes",
            "Pod",
            [simulated, _expression(".metadata.deletionTimestamp", "Exists")],
            next={"delete": True},
        ),
    ]


def configuration() -> str:
    """KWOK's configuration file: all stages as one YAML stream."""
    documents = stages()
    return yaml.safe_dump_all(json.loads(json.dumps(documents)), sort_keys=False)
