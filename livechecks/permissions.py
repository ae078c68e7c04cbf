"""What the deployer may have to do in the project.

Owns one list of IAM permissions a section of the stack: those that creating its resources takes (IAM reference of
each service, seen 2026-12-01). Refuses to list what no resource of the stack needs: a deployer's role may be narrow.
"""

from settings import Settings

_ALWAYS = (
    "serviceusage.services.enable",
    "serviceusage.services.list",
    "container.clusters.create",
    "container.clusters.get",
    "container.clusters.update",
    "container.operations.get",
    "iam.serviceAccounts.create",
    "iam.serviceAccounts.get",
    # Nodes run as the account that the stack makes.
    "iam.serviceAccounts.actAs",
    # That account's role is granted on the project.
    "resourcemanager.projects.getIamPolicy",
    "resourcemanager.projects.setIamPolicy",
)
_NETWORK = (
    "compute.networks.create",
    "compute.networks.get",
    "compute.networks.updatePolicy",
    "compute.subnetworks.create",
    "compute.subnetworks.get",
    "compute.firewalls.create",
)
_NAT = ("compute.routers.create", "compute.routers.update")
_POLICY = ("compute.resourcePolicies.create", "compute.resourcePolicies.get")


def needed(settings: Settings) -> list[str]:
    """Permissions on the stack's project, in the order of the sections."""
    wanted = list(_ALWAYS)
    if settings.network.existing is None:
        wanted += _NETWORK
        if settings.cluster.private_nodes:
            wanted += _NAT
    if settings.slice_pools:
        wanted += _POLICY
    return wanted
