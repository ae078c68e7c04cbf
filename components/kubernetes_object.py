"""One Kubernetes object, registered from a plain manifest.

Owns the way from a manifest (our YAML, or what a pure function returns) to a resource with the same type token as
the SDK's own classes. One class serves built-in kinds and custom ones, such as WorkloadPriorityClass, whose
fields lie beside `spec` where the SDK's `CustomResource` cannot reach. Refuses a manifest without a name.
"""

from collections.abc import Mapping
from typing import Any

import pulumi


def type_token(api_version: str, kind: str) -> str:
    """`("v1", "Secret")` → `kubernetes:core/v1:Secret`, as the provider's schema spells it."""
    group_version = f"core/{api_version}" if "/" not in api_version else api_version
    return f"kubernetes:{group_version}:{kind}"


class KubernetesObject(pulumi.CustomResource):
    """A Kubernetes object whose inputs are its manifest, key by key."""

    metadata: pulumi.Output[dict[str, Any]]
    """As the API server holds it."""

    def __init__(self, name: str, manifest: Mapping[str, Any], opts: pulumi.ResourceOptions | None = None):
        metadata = manifest.get("metadata")
        if not isinstance(metadata, Mapping) or not metadata.get("name"):
            raise ValueError(
                f"`metadata.name` must be given in the manifest of {name}: Kubernetes objects are interfaces, and "
                "a generated name would change under those who use them. Add the name."
            )
        properties: dict[str, Any] = dict(manifest)
        super().__init__(type_token(manifest["apiVersion"], manifest["kind"]), name, properties, opts)
