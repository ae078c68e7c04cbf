"""What the add-on installs in the cluster: the Slice CRD and the registrations of its webhooks and of Warden's.

Everything is applied again from time to time, as GKE's add-on manager does: what someone deleted comes back.
The CRD and the Slice webhook exist only where the cluster has the slice controller; Warden is everywhere.
"""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import yaml

from facts import labels
from simulator.kube_api import Api, ApiException

Object = dict[str, Any]

FIELD_MANAGER = "gke-addon-manager"
CRD_NAME = f"slices.{labels.SLICE_GROUP}"
SLICES_PATH = f"/apis/{labels.SLICE_GROUP}/v1beta1/slices"
_CRDS_PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_WEBHOOKS_PATH = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
_WEBHOOK_TIMEOUT_SECONDS = 10

# Only pods with TPUs may ever wait for us: a webhook that is down must not stop the others.
_ASKS_FOR_TPUS = " || ".join(
    f"(has(object.spec.{containers}) && object.spec.{containers}.exists(c, has(c.resources) &&"
    f" has(c.resources.{kind}) && '{labels.TPU_RESOURCE}' in c.resources.{kind}))"
    for containers in ("containers", "initContainers")
    for kind in ("requests", "limits")
)


def slice_crd() -> Object:
    """The CustomResourceDefinition of Slices."""
    crd: Object = yaml.safe_load((Path(__file__).parent / "crds" / "slices.yaml").read_text())
    return crd


def _webhook(name: str, rule: Object, condition: Object, *, url: str, certificate: bytes) -> Object:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [
            {
                "name": name,
                "clientConfig": {"url": url, "caBundle": base64.b64encode(certificate).decode()},
                "rules": [rule],
                "matchConditions": [condition],
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "failurePolicy": "Fail",
                "timeoutSeconds": _WEBHOOK_TIMEOUT_SECONDS,
            }
        ],
    }


def slice_webhook(url: str, certificate: bytes) -> Object:
    """Validation of Slices. Assumed: its name, which no document gives."""
    return _webhook(
        "slice-validating.accelerator.gke.io",
        {
            "apiGroups": [labels.SLICE_GROUP],
            "apiVersions": ["v1beta1"],
            "resources": ["slices"],
            "operations": ["CREATE", "UPDATE"],
            "scope": "Cluster",
        },
        {
            "name": "created-or-spec-changed",
            "expression": "request.operation == 'CREATE' || object.spec != oldObject.spec",
        },
        url=url,
        certificate=certificate,
    )


def warden_webhook(url: str, certificate: bytes) -> Object:
    """Warden's check of TPU pods; its name is the one that refusals show."""
    return _webhook(
        "warden-validating.common-webhooks.networking.gke.io",
        {
            "apiGroups": [""],
            "apiVersions": ["v1"],
            "resources": ["pods"],
            "operations": ["CREATE"],
            "scope": "Namespaced",
        },
        {"name": "asks-for-tpus", "expression": _ASKS_FOR_TPUS},
        url=url,
        certificate=certificate,
    )


class Registration:
    """Installs and keeps what belongs to the add-on."""

    def __init__(self, api: Api, url: str, certificate: bytes) -> None:
        self._api = api
        self._warden = warden_webhook(url, certificate)
        self._slices = slice_webhook(url, certificate)

    def apply(self, *, has_slice_controller: bool) -> bool:
        """Install what is missing; whether all of it serves."""
        self._apply(_WEBHOOKS_PATH, self._warden)
        if not has_slice_controller:
            return True
        self._apply(_WEBHOOKS_PATH, self._slices)  # before the CRD: no Slice is ever taken unchecked
        crd = self._apply(_CRDS_PATH, slice_crd())
        conditions = (crd.get("status") or {}).get("conditions") or []
        return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)

    def serves_slices(self) -> bool:
        """Whether Slices can be listed now."""
        try:
            self._api.get(SLICES_PATH, limit="1")
        except ApiException:
            return False
        return True

    def _apply(self, path: str, obj: Object) -> Object:
        return self._api.apply(f"{path}/{obj['metadata']['name']}", obj, field_manager=FIELD_MANAGER)
