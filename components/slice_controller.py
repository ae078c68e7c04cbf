"""The user-space slice controller: what turns Kueue's Workloads into Slices.

Owns the deployment of our own manifest (`manifests/slice-controller/`) with the image of the ledger and the flags of
the settings patched in. The controller writes its certificates into its Secret and the authority into its webhook
configuration; the manifest says nothing of those fields, so the engine never compares them.
Refuses a manifest in which what it means to patch has moved.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pulumi
import yaml

from components.kubernetes_object import KubernetesObject
from facts import versions

MANIFESTS = Path(__file__).parent.parent / "manifests" / "slice-controller"
# In the order in which one needs the other; a file that is missing or not named here fails a test.
FILES = (
    "namespace",
    "service-account",
    "role",
    "role-binding",
    "cluster-role",
    "cluster-role-binding",
    "secret",
    "service",
    "mutating-webhook-configuration",
    "deployment",
)
CONTAINER = "manager"


@dataclass(frozen=True, kw_only=True)
class SliceControllerArgs:
    """What `SliceController` is told."""

    activation_timeout_seconds: int
    """Seconds a Slice may take to become active."""
    retry_delay_seconds: int
    """Seconds before a failed Slice is tried again."""
    health_affinity: str
    """Which partitions pods may land on unless they say so themselves."""


class SliceController(pulumi.ComponentResource):
    """The controller with its namespace, rights, webhooks and Deployment."""

    deployment_name: pulumi.Output[str]
    """Name of the Deployment; available once it serves."""

    def __init__(
        self, name: str, args: SliceControllerArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("tpu-slices:index:SliceController", name, {}, opts)

        manifests = {file: load(file) for file in FILES}
        manifests["deployment"] = configured(manifests["deployment"], args)
        objects: dict[str, KubernetesObject] = {}
        for file, manifest in manifests.items():
            objects[file] = KubernetesObject(
                f"{name}-{file}",
                manifest,
                pulumi.ResourceOptions(
                    parent=self,
                    # Up: the namespace before what lies in it, and the Deployment after everything that it reads or
                    # writes at its start. Down: the Deployment goes first, with its rights still there.
                    depends_on=list(objects.values()) if file == "deployment" else objects.get("namespace"),
                    delete_before_replace=True,
                ),
            )

        self.deployment_name = objects["deployment"].metadata.apply(lambda metadata: str(metadata["name"]))
        self.register_outputs({"deployment_name": self.deployment_name})


def load(file: str) -> dict[str, Any]:
    """One manifest of the folder, as it stands."""
    manifest = yaml.safe_load((MANIFESTS / f"{file}.yaml").read_text())
    assert isinstance(manifest, dict)
    return manifest


def configured(deployment: dict[str, Any], args: SliceControllerArgs) -> dict[str, Any]:
    """The Deployment with the ledger's image and the settings' flags in place of its own."""
    containers = deployment["spec"]["template"]["spec"]["containers"]
    container = next((item for item in containers if item["name"] == CONTAINER), None)
    if container is None:
        raise ValueError(
            f"`spec.template.spec.containers` must hold one named {CONTAINER} (got "
            f"{[item['name'] for item in containers]}): its image and flags are patched. Fix manifests/slice-controller/"
            "deployment.yaml."
        )
    container["image"] = f"{versions.SLICE_CONTROLLER_IMAGE}:{versions.SLICE_CONTROLLER}"
    flags = {
        "--activation-timeout": f"{args.activation_timeout_seconds}s",
        "--retry-delay-on-slice-failure": f"{args.retry_delay_seconds}s",
        "--default-slice-health-node-affinity": args.health_affinity,
    }
    container["args"] = _with_flags(container["args"], flags)
    return deployment


def _with_flags(arguments: list[str], flags: dict[str, str]) -> list[str]:
    names = [argument.partition("=")[0] for argument in arguments]
    for flag in flags:
        if names.count(flag) != 1:
            raise ValueError(
                f"`args` of the slice controller must hold {flag} once (got {names.count(flag)} times): the settings "
                "set its value. Fix manifests/slice-controller/deployment.yaml."
            )
    return [
        f"{flag}={flags[flag]}" if flag in flags else argument
        for flag, argument in zip(names, arguments, strict=True)
    ]
