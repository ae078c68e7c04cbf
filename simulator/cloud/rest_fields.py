"""Where Google's REST API keeps each `gcp:` input: the tables behind `discovery`.

An input has the same name in the API unless a table says otherwise. `RENAMED` gives the other places, in
`discovery`'s notation: `a.b` a field of a message, `a[]` an element of a list, `a{}` a value of a map.
`WITHOUT_FIELD` is the named list of inputs for which the API has no field, each with its reason; it covers all
that lies below. Source of both: how the Terraform google-beta provider (which pulumi-gcp bridges) fills the
requests of each resource, read 2026-12-01. `discovery.unused_entries` finds reasons that no plan needs, `lost_entries` places that the API has not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class RestMessage:
    """The REST message that a resource type becomes: a schema, looked up in these discovery documents in order."""

    documents: tuple[str, ...]
    schema: str


_COMPUTE: Final = ("compute.v1", "compute.beta")
_CONTAINER: Final = ("container.v1", "container.v1beta1")

MESSAGES: Final[dict[str, RestMessage]] = {
    "gcp:projects/service:Service": RestMessage(("serviceusage.v1",), "GoogleApiServiceusageV1Service"),
    "gcp:compute/previewFeature:PreviewFeature": RestMessage(_COMPUTE, "PreviewFeature"),
    "gcp:compute/network:Network": RestMessage(_COMPUTE, "Network"),
    "gcp:compute/subnetwork:Subnetwork": RestMessage(_COMPUTE, "Subnetwork"),
    "gcp:compute/firewall:Firewall": RestMessage(_COMPUTE, "Firewall"),
    "gcp:compute/router:Router": RestMessage(_COMPUTE, "Router"),
    "gcp:compute/routerNat:RouterNat": RestMessage(_COMPUTE, "RouterNat"),
    "gcp:compute/resourcePolicy:ResourcePolicy": RestMessage(_COMPUTE, "ResourcePolicy"),
    "gcp:container/cluster:Cluster": RestMessage(_CONTAINER, "Cluster"),
    "gcp:container/nodePool:NodePool": RestMessage(_CONTAINER, "NodePool"),
    "gcp:serviceaccount/account:Account": RestMessage(("iam.v1",), "CreateServiceAccountRequest"),
    "gcp:serviceaccount/iAMMember:IAMMember": RestMessage(("iam.v1",), "Binding"),
    "gcp:projects/iAMMember:IAMMember": RestMessage(("cloudresourcemanager.v1",), "Binding"),
    "gcp:storage/bucket:Bucket": RestMessage(("storage.v1",), "Bucket"),
    "gcp:storage/bucketIAMMember:BucketIAMMember": RestMessage(("storage.v1",), "Policy"),
}

RENAMED: Final[dict[str, dict[str, str]]] = {
    "gcp:projects/service:Service": {"service": "name", "project": "parent"},
    "gcp:compute/network:Network": {
        "routingMode": "routingConfig.routingMode",
    },
    "gcp:compute/firewall:Firewall": {
        "allows": "allowed",
        "allows[].protocol": "allowed[].IPProtocol",
        "denies": "denied",
        "denies[].protocol": "denied[].IPProtocol",
    },
    "gcp:compute/routerNat:RouterNat": {
        "subnetworks[].sourceIpRangesToNats": "subnetworks[].sourceIpRangesToNat",
    },
    "gcp:container/cluster:Cluster": {
        "minMasterVersion": "initialClusterVersion",
        "nodeLocations": "locations",
        "datapathProvider": "networkConfig.datapathProvider",
        "dnsConfig": "networkConfig.dnsConfig",
        "gatewayApiConfig": "networkConfig.gatewayApiConfig",
        "enableIntranodeVisibility": "networkConfig.enableIntraNodeVisibility",
        "enableL4IlbSubsetting": "networkConfig.enableL4ilbSubsetting",
        "enableMultiNetworking": "networkConfig.enableMultiNetworking",
        "enableShieldedNodes": "shieldedNodes.enabled",
        "defaultMaxPodsPerNode": "defaultMaxPodsConstraint.maxPodsPerNode",
        "loggingConfig.enableComponents": "loggingConfig.componentConfig.enableComponents",
        "monitoringConfig.enableComponents": "monitoringConfig.componentConfig.enableComponents",
        "monitoringConfig.managedPrometheus": "monitoringConfig.managedPrometheusConfig",
        "maintenancePolicy.maintenanceExclusions": "maintenancePolicy.window.maintenanceExclusions",
        "maintenancePolicy.maintenanceExclusions[]": "maintenancePolicy.window.maintenanceExclusions{}",
        "maintenancePolicy.maintenanceExclusions[].exclusionOptions": (
            "maintenancePolicy.window.maintenanceExclusions{}.maintenanceExclusionOptions"
        ),
        "maintenancePolicy.recurringWindow": "maintenancePolicy.window.recurringWindow",
        "maintenancePolicy.recurringWindow.startTime": "maintenancePolicy.window.recurringWindow.window.startTime",
        "maintenancePolicy.recurringWindow.endTime": "maintenancePolicy.window.recurringWindow.window.endTime",
        "maintenancePolicy.dailyMaintenanceWindow": "maintenancePolicy.window.dailyMaintenanceWindow",
    },
    "gcp:container/nodePool:NodePool": {
        "nodeConfig": "config",
        "nodeCount": "initialNodeCount",
        "nodeLocations": "locations",
        "maxPodsPerNode": "maxPodsConstraint.maxPodsPerNode",
        "nodeConfig.loggingVariant": "config.loggingConfig.variantConfig.variant",
    },
    "gcp:serviceaccount/account:Account": {
        "displayName": "serviceAccount.displayName",
        "description": "serviceAccount.description",
    },
    "gcp:serviceaccount/iAMMember:IAMMember": {"member": "members[]"},
    "gcp:projects/iAMMember:IAMMember": {"member": "members[]"},
    "gcp:storage/bucket:Bucket": {
        "uniformBucketLevelAccess": "iamConfiguration.uniformBucketLevelAccess.enabled",
        "publicAccessPrevention": "iamConfiguration.publicAccessPrevention",
        "lifecycleRules": "lifecycle.rule",
    },
    "gcp:storage/bucketIAMMember:BucketIAMMember": {
        "member": "bindings[].members[]",
        "role": "bindings[].role",
        "condition": "bindings[].condition",
    },
}

_IN_PATH: Final = "it stands in the request's path, not in its body"
_CLIENT_SIDE: Final = "only the provider acts on it: it decides what a delete does"

WITHOUT_FIELD: Final[dict[str, dict[str, str]]] = {
    "gcp:projects/service:Service": {
        "disableOnDestroy": _CLIENT_SIDE,
    },
    "gcp:compute/previewFeature:PreviewFeature": {"project": _IN_PATH},
    "gcp:compute/network:Network": {
        "project": _IN_PATH,
    },
    "gcp:compute/subnetwork:Subnetwork": {"project": _IN_PATH},
    "gcp:compute/firewall:Firewall": {"project": _IN_PATH},
    "gcp:compute/router:Router": {"project": _IN_PATH},
    "gcp:compute/routerNat:RouterNat": {
        "project": _IN_PATH,
        "region": _IN_PATH,
        "router": "the NAT is an element of this router's `nats`: it stands in the request's path",
    },
    "gcp:compute/resourcePolicy:ResourcePolicy": {"project": _IN_PATH, "region": _IN_PATH},
    "gcp:container/cluster:Cluster": {
        "project": _IN_PATH,
        "location": _IN_PATH,
        "deletionProtection": _CLIENT_SIDE,
        "removeDefaultNodePool": "the provider deletes the pool in a second request",
        "networkingMode": "the provider turns it into ipAllocationPolicy.useIpAliases",
        "maintenancePolicy.maintenanceExclusions[].exclusionName": "the key under which the API keeps the exclusion",
    },
    "gcp:container/nodePool:NodePool": {
        "project": _IN_PATH,
        "cluster": _IN_PATH,
        "location": _IN_PATH,
    },
    "gcp:serviceaccount/account:Account": {"project": _IN_PATH},
    "gcp:serviceaccount/iAMMember:IAMMember": {"serviceAccountId": _IN_PATH},
    "gcp:projects/iAMMember:IAMMember": {"project": _IN_PATH},
    "gcp:storage/bucket:Bucket": {
        "project": "an argument of the insert request, not part of the bucket",
        "forceDestroy": _CLIENT_SIDE,
    },
    "gcp:storage/bucketIAMMember:BucketIAMMember": {"bucket": _IN_PATH},
}
