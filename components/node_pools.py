"""What the node pools of this program have in common.

Owns the hardening of every node (identity, metadata, shielding, image) and the limits of upgrades. Refuses the
default service account, whose project-wide editor role every pod could borrow.
"""

import pulumi
import pulumi_gcp as gcp

from facts import reservations

# Scopes say what the node may ask for, the service account's roles what it gets: the wide scope with a minimal
# account is what Google recommends. (The seed's default scope, storage read only, would hide the roles.)
NODE_SCOPES = ["https://www.googleapis.com/auth/cloud-platform"]
IMAGE_TYPE = "COS_CONTAINERD"
# GKE API: maxSurge + maxUnavailable of a node pool.
MOST_AT_ONCE = 20
# A pool of 16 reserved TPU hosts takes longer than the provider's default of 30 minutes when a block is repaired.
POOL_TIMEOUTS = pulumi.CustomTimeouts(create="60m", update="90m", delete="60m")


def node_config(
    machine_type: str,
    service_account: pulumi.Input[str],
    *,
    reservation: str | None = None,
    host_maintenance: str | None = None,
    spot: bool = False,
) -> gcp.container.NodePoolNodeConfigArgs:
    """The node configuration of a pool, hardened alike everywhere.

    `reservation` is the exact value of the one reservation, block or sub-block that the hosts come from.
    """
    return gcp.container.NodePoolNodeConfigArgs(
        machine_type=machine_type,
        image_type=IMAGE_TYPE,
        service_account=service_account,
        oauth_scopes=NODE_SCOPES,
        # Pods get identities of their own, and never the node's.
        workload_metadata_config=gcp.container.NodePoolNodeConfigWorkloadMetadataConfigArgs(
            mode="GKE_METADATA"
        ),
        shielded_instance_config=gcp.container.NodePoolNodeConfigShieldedInstanceConfigArgs(
            enable_secure_boot=True, enable_integrity_monitoring=True
        ),
        reservation_affinity=gcp.container.NodePoolNodeConfigReservationAffinityArgs(
            consume_reservation_type="SPECIFIC_RESERVATION",
            key=reservations.AFFINITY_KEY,
            values=[reservation],
        )
        if reservation
        else None,
        host_maintenance_policy=gcp.container.NodePoolNodeConfigHostMaintenancePolicyArgs(
            maintenance_interval=host_maintenance
        )
        if host_maintenance
        else None,
        spot=True if spot else None,
    )


def management() -> gcp.container.NodePoolManagementArgs:
    """Repair and upgrade by GKE: a cluster in a release channel takes no pool without both."""
    return gcp.container.NodePoolManagementArgs(auto_repair=True, auto_upgrade=True)


def upgrade_in_place(host_count: int) -> gcp.container.NodePoolUpgradeSettingsArgs:
    """A slice of reserved hosts has no spare to surge into, and is lost with its first host: all at once."""
    return gcp.container.NodePoolUpgradeSettingsArgs(
        strategy="SURGE", max_surge=0, max_unavailable=min(host_count, MOST_AT_ONCE)
    )
