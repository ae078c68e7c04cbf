"""Which changes replace a resource, which order does not matter, and what Google may set by itself.

Taken from the schemas of the Terraform google-beta provider that pulumi-gcp bridges (read 2026-12-01 at the
provider's commit of 2026-08-21): `ForceNew`, `TypeSet`, and attributes that are both `Optional` and `Computed`.
Paths are Pulumi's, list indexes left out. A path is met only by a change of exactly that value: a block that forces
replacement does so when it appears or goes, its fields only if they are listed themselves (`placementPolicy.type` is
not). Inputs that no resource of the region's kinds can have here are left out.
"""

from __future__ import annotations

from typing import Final

_NODE_CONFIG_REPLACES: Final = frozenset(
    f"nodeConfig.{path}"
    for path in (
        "advancedMachineFeatures",
        "advancedMachineFeatures.enableNestedVirtualization",
        "advancedMachineFeatures.threadsPerCore",
        "bootDiskKmsKey",
        "confidentialNodes.confidentialInstanceType",
        "enableConfidentialStorage",
        "ephemeralStorageConfig",
        "ephemeralStorageConfig.localSsdCount",
        "ephemeralStorageLocalSsdConfig",
        "ephemeralStorageLocalSsdConfig.dataCacheCount",
        "ephemeralStorageLocalSsdConfig.localSsdCount",
        "flexStart",
        "guestAccelerators",
        "guestAccelerators.count",
        "guestAccelerators.type",
        "hostMaintenancePolicy",
        "hostMaintenancePolicy.maintenanceInterval",
        "hostMaintenancePolicy.opportunisticMaintenanceStrategy",
        "localNvmeSsdBlockConfig",
        "localNvmeSsdBlockConfig.localSsdCount",
        "localSsdCount",
        "localSsdEncryptionMode",
        "maxRunDuration",
        "metadata",
        "minCpuPlatform",
        "nodeGroup",
        "oauthScopes",
        "preemptible",
        "reservationAffinity",
        "reservationAffinity.consumeReservationType",
        "reservationAffinity.key",
        "reservationAffinity.values",
        "sandboxConfig",
        "secondaryBootDisks",
        "secondaryBootDisks.diskImage",
        "secondaryBootDisks.mode",
        "serviceAccount",
        "shieldedInstanceConfig",
        "shieldedInstanceConfig.enableIntegrityMonitoring",
        "shieldedInstanceConfig.enableSecureBoot",
        "soleTenantConfig",
        "spot",
    )
)

REPLACES: Final[dict[str, frozenset[str]]] = {
    "gcp:projects/service:Service": frozenset({"project", "service"}),
    "gcp:compute/previewFeature:PreviewFeature": frozenset({"name", "project"}),
    "gcp:compute/network:Network": frozenset(
        {
            "autoCreateSubnetworks",
            "description",
            "internalIpv6Range",
            "name",
            "networkProfile",
            "params",
            "project",
        }
    ),
    "gcp:compute/subnetwork:Subnetwork": frozenset(
        {
            "description",
            "externalIpv6Prefix",
            "internalIpv6Prefix",
            "name",
            "network",
            "params",
            "project",
            "region",
            "resolveSubnetMask",
        }
    ),
    "gcp:compute/firewall:Firewall": frozenset({"direction", "name", "params", "project"}),
    "gcp:compute/router:Router": frozenset(
        {"encryptedInterconnectRouter", "name", "nccGateway", "network", "params", "project", "region"}
    ),
    "gcp:compute/routerNat:RouterNat": frozenset(
        {"endpointTypes", "initialNatIps", "name", "project", "region", "router", "type"}
    ),
    # `name` is part of the id, though the schema does not say ForceNew: assumed.
    "gcp:compute/resourcePolicy:ResourcePolicy": frozenset(
        {
            "name",
            "project",
            "region",
            "workloadPolicy.acceleratorTopology",
            "workloadPolicy.acceleratorTopologyMode",
            "workloadPolicy.maxTopologyDistance",
            "workloadPolicy.type",
        }
    ),
    "gcp:container/cluster:Cluster": _NODE_CONFIG_REPLACES
    | {
        "clusterIpv4Cidr",
        "confidentialNodes",
        "confidentialNodes.confidentialInstanceType",
        "confidentialNodes.enabled",
        "dataplaneOptimizationMode",
        "datapathProvider",
        "defaultMaxPodsPerNode",
        "description",
        "enableAutopilot",
        "enableKubernetesAlpha",
        "enableTpu",
        "initialNodeCount",
        "ipAllocationPolicy",
        "ipAllocationPolicy.clusterIpv4CidrBlock",
        "ipAllocationPolicy.clusterSecondaryRangeName",
        "ipAllocationPolicy.podCidrOverprovisionConfig",
        "ipAllocationPolicy.servicesIpv4CidrBlock",
        "ipAllocationPolicy.servicesSecondaryRangeName",
        "location",
        "masterAuth.clientCertificateConfig",
        "masterAuth.clientCertificateConfig.issueClientCertificate",
        "name",
        "network",
        "networkingMode",
        "nodePools",
        "privateClusterConfig.masterIpv4CidrBlock",
        "privateClusterConfig.privateEndpointSubnetwork",
        "project",
        "subnetwork",
        "tpuConfig.enabled",
        "userManagedKeysConfig.aggregationCa",
        "userManagedKeysConfig.clusterCa",
        "userManagedKeysConfig.etcdApiCa",
        "userManagedKeysConfig.etcdPeerCa",
    },
    "gcp:container/nodePool:NodePool": _NODE_CONFIG_REPLACES
    | {
        "cluster",
        "initialNodeCount",
        "location",
        "maxPodsPerNode",
        "name",
        "namePrefix",
        "networkConfig.acceleratorNetworkProfile",
        "networkConfig.additionalNodeNetworkConfigs",
        "networkConfig.additionalPodNetworkConfigs",
        "networkConfig.createPodRange",
        "networkConfig.podCidrOverprovisionConfig",
        "networkConfig.podIpv4CidrBlock",
        "networkConfig.podRange",
        "networkConfig.subnetwork",
        "placementPolicy",
        "placementPolicy.policyName",
        "project",
        "queuedProvisioning",
        "queuedProvisioning.enabled",
    },
    "gcp:serviceaccount/account:Account": frozenset({"accountId", "project"}),
    # An IAM member has no update at all: every input replaces it.
    "gcp:serviceaccount/iAMMember:IAMMember": frozenset({"condition", "member", "role", "serviceAccountId"}),
    "gcp:projects/iAMMember:IAMMember": frozenset({"condition", "member", "project", "role"}),
    "gcp:storage/bucketIAMMember:BucketIAMMember": frozenset({"bucket", "condition", "member", "role"}),
    "gcp:storage/bucket:Bucket": frozenset(
        {
            "customPlacementConfig.dataLocations",
            "enableObjectRetention",
            "hierarchicalNamespace",
            "hierarchicalNamespace.enabled",
            "location",
            "name",
            "project",
        }
    ),
}

UNORDERED: Final[dict[str, frozenset[str]]] = {
    "gcp:compute/firewall:Firewall": frozenset(
        {
            "allows",
            "denies",
            "destinationRanges",
            "sourceRanges",
            "sourceServiceAccounts",
            "sourceTags",
            "targetServiceAccounts",
            "targetTags",
        }
    ),
    "gcp:compute/router:Router": frozenset({"bgp.advertisedIpRanges"}),
    "gcp:compute/routerNat:RouterNat": frozenset({"drainNatIps", "natIps", "rules", "subnetworks"}),
    "gcp:container/cluster:Cluster": frozenset(
        {
            "loggingConfig.enableComponents",
            "maintenancePolicy.maintenanceExclusions",
            "masterAuthorizedNetworksConfig.cidrBlocks",
            "monitoringConfig.enableComponents",
            "nodeConfig.oauthScopes",
            "nodeConfig.reservationAffinity.values",
            "nodeLocations",
        }
    ),
    "gcp:container/nodePool:NodePool": frozenset(
        {"nodeConfig.oauthScopes", "nodeConfig.reservationAffinity.values", "nodeLocations"}
    ),
    "gcp:storage/bucket:Bucket": frozenset({"lifecycleRules.action", "lifecycleRules.condition"}),
}

_NODE_CONFIG_KEPT: Final = frozenset(
    f"nodeConfig.{name}"
    for name in (
        "confidentialNodes",
        "diskSizeGb",
        "diskType",
        "gpudirectStrategy",
        "guestAccelerators",
        "imageType",
        "kubeletConfig",
        "labels",
        "linuxNodeConfig",
        "localSsdCount",
        "loggingVariant",
        "machineType",
        "metadata",
        "minCpuPlatform",
        "oauthScopes",
        "serviceAccount",
        "shieldedInstanceConfig",
        "windowsNodeConfig",
        "workloadMetadataConfig",
    )
)

KEPT_WHEN_UNSET: Final[dict[str, frozenset[str]]] = {
    # Below the top level only: for the top level the SDK's own schema says it (`sdk_schema`). `parent.*` covers all.
    "gcp:compute/subnetwork:Subnetwork": frozenset(
        {"secondaryIpRanges.ipCidrRange", "secondaryIpRanges.ipVersion"}
    ),
    "gcp:container/cluster:Cluster": _NODE_CONFIG_KEPT
    | {
        "addonsConfig.*",
        "controlPlaneEndpointsConfig.*",
        "controlPlaneEndpointsConfig.dnsEndpointConfig.endpoint",
        "ipAllocationPolicy.*",
        "monitoringConfig.*",
        "privateClusterConfig.masterGlobalAccessConfig",
        "privateClusterConfig.masterIpv4CidrBlock",
        "securityPostureConfig.*",
    },
    "gcp:container/nodePool:NodePool": _NODE_CONFIG_KEPT
    | {"networkConfig.*", "upgradeSettings.maxSurge", "upgradeSettings.maxUnavailable"},
}

VOLUNTEERED: Final[dict[str, tuple[str, ...]]] = {
    # Values that Google writes although nobody asked, into attributes that Terraform does not call computed: the real
    # provider wants to remove them at every update (seen by vllm ci-infra #547 for the policy's topology).
    "gcp:container/nodePool:NodePool": ("placementPolicy.tpuTopology",),
}

REFERENCES: Final = frozenset(
    {"network", "subnetwork", "router", "subnetworks.name", "placementPolicy.policyName"}
)
"""Inputs that name a resource: a name, a path and a self link mean the same (the provider compares them so)."""
