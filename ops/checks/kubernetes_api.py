"""The few calls that the checks make to a Kubernetes API server, with plain dicts in and out.

Owns: paths, time-outs, errors as `ApiRefusal`. Refuses: to keep state, to retry a refusal, to write the
kubeconfig (which may hold a credential) anywhere. Tests replace `Cluster` by a fake with the same five calls.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import quote

import urllib3
from kubernetes import client
from kubernetes.config import ConfigException, kube_config

KubernetesObject = dict[str, Any]

CONNECT_TIMEOUT_SECONDS = 5.0
READ_TIMEOUT_SECONDS = 20.0
LOG_TAIL_LINES = 400


@dataclass(frozen=True)
class Resource:
    """One kind of object as the API server serves it."""

    api: str
    plural: str
    kind: str
    namespaced: bool

    def path(self, namespace: str | None, name: str | None = None) -> str:
        """The URL path of the collection, or of one object."""
        root = f"/api/{self.api}" if "/" not in self.api else f"/apis/{self.api}"
        scope = f"/namespaces/{quote(namespace)}" if self.namespaced and namespace else ""
        return f"{root}{scope}/{self.plural}" + (f"/{quote(name)}" if name else "")


NODES = Resource("v1", "nodes", "Node", namespaced=False)
PODS = Resource("v1", "pods", "Pod", namespaced=True)
EVENTS = Resource("v1", "events", "Event", namespaced=True)
NAMESPACES = Resource("v1", "namespaces", "Namespace", namespaced=False)
DEPLOYMENTS = Resource("apps/v1", "deployments", "Deployment", namespaced=True)
JOBSETS = Resource("jobset.x-k8s.io/v1alpha2", "jobsets", "JobSet", namespaced=True)
WORKLOADS = Resource("kueue.x-k8s.io/v1beta2", "workloads", "Workload", namespaced=True)
TOPOLOGIES = Resource("kueue.x-k8s.io/v1beta2", "topologies", "Topology", namespaced=False)
RESOURCE_FLAVORS = Resource("kueue.x-k8s.io/v1beta2", "resourceflavors", "ResourceFlavor", namespaced=False)
ADMISSION_CHECKS = Resource("kueue.x-k8s.io/v1beta2", "admissionchecks", "AdmissionCheck", namespaced=False)
CLUSTER_QUEUES = Resource("kueue.x-k8s.io/v1beta2", "clusterqueues", "ClusterQueue", namespaced=False)
LOCAL_QUEUES = Resource("kueue.x-k8s.io/v1beta2", "localqueues", "LocalQueue", namespaced=True)
PRIORITY_CLASSES = Resource(
    "kueue.x-k8s.io/v1beta2", "workloadpriorityclasses", "WorkloadPriorityClass", namespaced=False
)
SLICES = Resource("accelerator.gke.io/v1beta1", "slices", "Slice", namespaced=False)


class ApiRefusal(Exception):
    """What the API server, or the way to it, answered instead of what was asked."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        """HTTP status; 0 when no answer came."""

    @property
    def not_found(self) -> bool:
        return self.status == 404

    @property
    def conflict(self) -> bool:
        return self.status == 409

    @property
    def may_pass(self) -> bool:
        """True where asking again can help: no answer, too many requests, a server in trouble."""
        return self.status in (0, 408, 429) or self.status >= 500


class Cluster(Protocol):
    """What the checks need of a cluster."""

    def get(self, resource: Resource, name: str, namespace: str | None = None) -> KubernetesObject | None:
        """The object, or None where there is none."""

    def list(
        self, resource: Resource, namespace: str | None = None, *, labels: str = "", fields: str = ""
    ) -> list[KubernetesObject]:
        """All objects that match."""

    def create(self, resource: Resource, manifest: KubernetesObject) -> KubernetesObject:
        """Make it; an existing one is a conflict."""

    def delete(self, resource: Resource, name: str, namespace: str | None, uid: str) -> None:
        """Delete that very object and what it owns; an absent one is fine."""

    def log(self, namespace: str, pod: str, container: str) -> str:
        """The end of what the container printed."""


class LiveCluster:
    """A `Cluster` behind a kubeconfig."""

    def __init__(self, api: client.ApiClient) -> None:
        self._api = api

    @classmethod
    def from_kubeconfig(cls, kubeconfig: Mapping[str, Any] | str) -> LiveCluster:
        """From the content of a kubeconfig (never written to disk by us) or from the path of one."""
        loader: Any = kube_config  # carries no types
        try:
            if isinstance(kubeconfig, str):
                return cls(loader.new_client_from_config(config_file=kubeconfig))
            return cls(loader.new_client_from_config_dict(dict(kubeconfig)))
        except ConfigException as refusal:
            raise ApiRefusal(0, f"the kubeconfig cannot be used: {refusal}") from refusal

    @property
    def server(self) -> str:
        return str(self._api.configuration.host)

    def version(self) -> str:
        """The server's version; fails when the server cannot be reached or lets us not in."""
        return str(self._json("GET", "/version").get("gitVersion", "unknown"))

    def get(self, resource: Resource, name: str, namespace: str | None = None) -> KubernetesObject | None:
        try:
            return self._json("GET", resource.path(namespace, name))
        except ApiRefusal as refusal:
            if refusal.not_found:
                return None
            raise

    def list(
        self, resource: Resource, namespace: str | None = None, *, labels: str = "", fields: str = ""
    ) -> list[KubernetesObject]:
        query = {"labelSelector": labels, "fieldSelector": fields}
        answer = self._json("GET", resource.path(namespace), {k: v for k, v in query.items() if v})
        items: list[KubernetesObject] = answer.get("items") or []
        return items

    def create(self, resource: Resource, manifest: KubernetesObject) -> KubernetesObject:
        return self._json("POST", resource.path(manifest["metadata"].get("namespace")), body=manifest)

    def delete(self, resource: Resource, name: str, namespace: str | None, uid: str) -> None:
        options = {"propagationPolicy": "Background", "preconditions": {"uid": uid}}
        try:
            self._json("DELETE", resource.path(namespace, name), body=options)
        except ApiRefusal as refusal:
            if not (refusal.not_found or refusal.conflict):  # a conflict: another object bears the name now
                raise

    def log(self, namespace: str, pod: str, container: str) -> str:
        query = {"container": container, "tailLines": str(LOG_TAIL_LINES)}
        return self._text("GET", PODS.path(namespace, pod) + "/log", query)

    def _json(
        self, method: str, path: str, query: Mapping[str, str] | None = None, body: Any = None
    ) -> dict[str, Any]:
        answer = json.loads(self._text(method, path, query, body))
        if not isinstance(answer, dict):
            raise ApiRefusal(0, f"{method} {path} answered something that is no object")
        return answer

    def _text(self, method: str, path: str, query: Mapping[str, str] | None = None, body: Any = None) -> str:
        try:
            request = self._api.param_serialize(
                method,
                path,
                query_params=list((query or {}).items()),
                header_params={"Accept": "application/json, */*", "Content-Type": "application/json"},
                body=body,
                auth_settings=["BearerToken"],
            )
            answer: Any = self._api.call_api(
                *request, _request_timeout=(CONNECT_TIMEOUT_SECONDS, READ_TIMEOUT_SECONDS)
            )
            content = (answer.read() or b"").decode(errors="replace")
        except (urllib3.exceptions.HTTPError, client.ApiException, OSError) as failure:
            raise ApiRefusal(0, f"no answer from {self.server}: {_cause(failure)}") from failure
        if not 200 <= answer.status < 300:
            raise ApiRefusal(answer.status, _message(content) or f"{method} {path}: HTTP {answer.status}")
        return content


def _message(content: str) -> str:
    """The message of a Kubernetes Status object, else the start of the text."""
    try:
        return str(json.loads(content)["message"])
    except (ValueError, KeyError, TypeError):
        return content.strip()[:300]


def _cause(failure: BaseException) -> str:
    reason = getattr(failure, "reason", None)
    return str(reason if reason is not None else failure)
