"""The settings of a stack: the typed contract between `Pulumi.<stack>.yaml` and the program.

Owns the models (names, types, defaults and the meaning of every key) and the only reading of Pulumi's config.
`load` is pure: it takes what config holds (JSON texts from the engine, structures from a file) and either gives
`Settings` or raises `SettingsError` with every problem at once. `from_pulumi` does the same in a running
program. Rules that need one field lie in `preflight.fields`, rules that join sections in `preflight.rules_…`.
Refuses to import Pulumi before `from_pulumi` is called, to open a file, and to branch on a stack's name.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field

from facts import locations, names, networks, reservations, tpu, versions
from preflight import cautions, decode, fields
from preflight.fields import Section
from preflight.problems import SettingsError
from preflight.sealed import Sealed

__all__ = ["Settings", "SettingsError", "from_pulumi", "load", "warnings"]


class ExistingNetwork(Section):
    """A network that somebody else owns; given, nothing of it is made."""

    network: fields.GceName
    """Name of the VPC network."""
    subnet: fields.GceName
    """Name of the subnet for TPU and system hosts, in the region of the zone."""
    proxy_subnet: bool = False
    """True when region and network already have their proxy-only subnet; else we make it."""
    pod_range: fields.GceName | None = None
    """Name of the subnet's secondary range for pods; without it GKE makes one."""
    service_range: fields.GceName | None = None
    """Name of the subnet's secondary range for Services; without it GKE makes one."""


class Network(Section):
    """The VPC network, its subnet with two secondary ranges, and the proxy-only subnet."""

    name: fields.NetworkPrefix = "qwen-serving"
    """Prefix of every network resource: <name>-main, <name>-tpu, <name>-proxy, …"""
    mtu: int = Field(default=networks.MTU_TPU, ge=networks.MTU_MINIMUM, le=networks.MTU_MAXIMUM)
    """Bytes a packet may have; TPU hosts want the largest, 8896."""
    subnet_cidr: fields.Cidr = "10.10.0.0/18"
    """Primary range: one address a node."""
    proxy_cidr: fields.Cidr = "172.16.0.0/26"
    """Range of the proxy-only subnet of internal load balancers."""
    pod_cidr: fields.Cidr = "10.64.0.0/14"
    """Secondary range for pods: a /24 a node."""
    service_cidr: fields.Cidr = "10.96.0.0/20"
    """Secondary range for Services: one address each."""
    existing: ExistingNetwork | None = None
    """Use this network instead of making one."""


class SystemPool(Section):
    """The CPU nodes that run the controllers; never in an AI zone."""

    machine_type: fields.CpuMachineType = "n2-standard-32"
    """Machine type of the nodes."""
    node_count: int = Field(default=1, ge=1, le=100)
    """Nodes in each zone."""
    zones: list[fields.Zone] = Field(default_factory=list)
    """Ordinary zones of the region; without it, three that the region has."""


class MaintenanceExclusion(Section):
    """A time in which GKE upgrades nothing by itself."""

    name: fields.GceName = "no-upgrade"
    """Name of the exclusion."""
    start: fields.Instant
    """Begin: an RFC 3339 time with a zone, such as 2026-12-01T00:00:00Z, or a date."""
    end: fields.Instant
    """End: an RFC 3339 time with a zone, or a date; in the future."""
    scope: Literal["NO_UPGRADES", "NO_MINOR_UPGRADES", "NO_MINOR_OR_NODE_UPGRADES"] = "NO_UPGRADES"
    """What is excluded."""


class Cluster(Section):
    """The regional GKE cluster and its system pool."""

    name: fields.ClusterName = "tpu-serving-cluster"
    """Name of the cluster."""
    version: fields.GkeVersionText = versions.GKE_DEFAULT
    """One exact GKE version, for control plane and nodes."""
    system_pool: SystemPool = Field(default_factory=SystemPool)
    """The nodes that run the controllers."""
    deletion_protection: bool = False
    """True: GKE refuses to delete the cluster, and the engine to delete cluster and pools."""
    private_nodes: bool = True
    """True: nodes have no public address and go out through Cloud NAT."""
    control_plane_access: fields.ControlPlaneAccess = "dns"
    """dns: by DNS name, IAM decides. public: the public address, open. A list: only from these ranges."""
    maintenance_exclusion: MaintenanceExclusion | None = None
    """No default: nobody else knows your dates."""


class Reservation(Section):
    """A reservation, or a part of it. Names may also be paths, in any form that Google prints."""

    name: fields.ReservationName
    """Name of the reservation."""
    project: fields.ProjectId | None = None
    """Project that owns it, when it is shared with ours."""
    zone: fields.Zone | None = None
    """Zone of it, as a path may say; the stack's own."""
    block: fields.ReservationPart | None = None
    """Block inside it."""
    sub_blocks: list[fields.ReservationPart] = Field(default_factory=list)
    """Sub-blocks inside the block, one a cube: the first belongs to pool 1. Without them GKE picks."""

    def value(self, project: str, cube: int = 1) -> str:
        """The exact value for the pool of that cube (from 1), in a stack of that project."""
        sub_block = self.sub_blocks[cube - 1] if self.sub_blocks else None
        return reservations.value(self.project or project, self.name, self.block, sub_block)


class SlicePool(Section):
    """tpu7x cubes from one reservation block; each cube is a node pool of 16 hosts."""

    name: fields.NodePoolName
    """Prefix of the node pools, <name>-1, <name>-2, …: append-only."""
    machine_type: fields.SliceMachineType = "tpu7x-standard-4t"
    """The only machine type with dynamic slicing."""
    cubes: int = Field(ge=1, le=tpu.CUBES_PER_BLOCK)
    """Cubes (sub-blocks of 16 hosts) to hold; a block has 144."""
    reservation: fields.ReservationForm[Reservation]
    """What the hosts are taken from; PROVISION_ONLY pools take no others."""
    host_maintenance: Literal["AS_NEEDED", "PERIODIC"] | None = None
    """Host maintenance interval; must equal the reservation's."""
    adopted: bool = False
    """True: the pools were made by somebody else and imported; their node identity stays as it is (docs/import.md)."""

    @property
    def pool_names(self) -> list[str]:
        """Its node pools, in order."""
        return names.slice_pool_names(self.name, self.cubes)

    @property
    def host_count(self) -> int:
        """Hosts of all its cubes."""
        return self.cubes * tpu.HOSTS_PER_CUBE

    @property
    def chip_count(self) -> int:
        """Chips of all its cubes."""
        return self.cubes * tpu.CHIPS_PER_CUBE

    def reservation_values(self, project: str) -> dict[str, str]:
        """Node pool name → exact reservation value, in a stack of that project."""
        return {
            pool: self.reservation.value(project, cube) for cube, pool in enumerate(self.pool_names, start=1)
        }


class MultihostPool(Section):
    """A static multi-host slice (v6e): one node pool, one slice, one fixed size."""

    name: fields.NodePoolName
    """Name of the node pool."""
    machine_type: fields.MultihostMachineType = "ct6e-standard-4t"
    """Machine type of the hosts."""
    topology: fields.StaticTopology
    """2-D topology of the slice, such as 4x4."""
    placement: Literal["compact"] | None = None
    """compact: hosts next to each other."""
    spot: bool = False
    """True: spare capacity that Google may take back."""
    reservation: fields.ReservationForm[Reservation | None] = None
    """What the hosts are taken from; without it, on demand."""

    @property
    def chip_count(self) -> int:
        """Chips of the slice."""
        return tpu.chip_count(self.topology)

    @property
    def host_count(self) -> int:
        """Hosts of the slice."""
        return tpu.static_host_count(self.machine_type, self.topology)

    def reservation_value(self, project: str) -> str | None:
        """Exact reservation value, in a stack of that project; None on demand."""
        return self.reservation.value(project) if self.reservation else None


class Charts(Section):
    """Where the controllers' charts come from."""

    source: fields.ChartSource = "oci"
    """oci, or a folder relative to the program that holds kueue, jobset and lws."""


class SliceController(Section):
    """Flags of the user-space slice controller."""

    activation_timeout_seconds: int = Field(default=360, ge=30, le=86400)
    """Seconds a Slice may take to become active."""
    retry_delay_seconds: int = Field(default=10, ge=1, le=3600)
    """Seconds before a failed Slice is tried again."""
    health_affinity: Literal["HEALTHY", "HEALTHY_AND_DEGRADED"] = "HEALTHY_AND_DEGRADED"
    """Which partitions pods may land on unless they say so themselves."""


class LocalQueue(Section):
    """A queue in a namespace; Kueue manages the namespaces named here and no other."""

    name: fields.QueueName = "lq"
    """Name that workloads carry in their label."""
    namespace: fields.Namespace
    """Namespace of the queue."""


class Queues(Section):
    """Kueue's queues and priorities."""

    cluster_queue: fields.QueueName = "cq"
    """Name of the one ClusterQueue; its quota is the chips of all slice pools."""
    local_queues: list[LocalQueue] = Field(
        default_factory=lambda: [LocalQueue(name="lq", namespace="llm-d-pd-disaggregation")], min_length=1
    )
    """The queues that people submit to."""
    priority_classes: dict[fields.QueueName, Annotated[int, Field(ge=-(10**9), le=10**9)]] = Field(
        default_factory=lambda: {
            "low-priority-1000": 1000,
            "medium-priority-2000": 2000,
            "high-priority-3000": 3000,
        }
    )
    """WorkloadPriorityClass → value; a higher one may preempt a lower one."""


class Model(Section):
    """The model that is served."""

    name: fields.ModelName = "Qwen/Qwen3.5-397B-A17B-FP8"
    """Name under which clients ask for it."""
    bucket: fields.BucketName
    """Bucket that holds the weights; it exists already."""
    path: fields.ModelPath
    """Path of the weights inside the bucket."""


class ServingRole(Section):
    """Prefill or decode: a LeaderWorkerSet of equal slices."""

    replicas: int = Field(default=4, ge=1, le=1000)
    """Groups, each on a slice of its own."""
    topology: fields.SliceTopology = "2x2x2"
    """Shape of each slice."""
    tensor_parallel_size: int | None = Field(default=None, ge=1)
    """Devices over which the model is split; without it, every device of the slice."""
    priority: fields.QueueName = "high-priority-3000"
    """Priority class of the groups."""

    @property
    def shape(self) -> tpu.Topology:
        """The slice's topology with its arithmetic."""
        return tpu.Topology.parse(self.topology)

    @property
    def tensor_parallel(self) -> int:
        """The size that vLLM is told."""
        return self.tensor_parallel_size or self.shape.device_count

    @property
    def host_count(self) -> int:
        """Hosts of all groups."""
        return self.replicas * self.shape.host_count


class PdServing(Section):
    """Prefill and decode serving on dynamic slices."""

    namespace: fields.Namespace = "llm-d-pd-disaggregation"
    """Namespace of everything it makes."""
    model: Model
    """What is served."""
    prefill: ServingRole = Field(default_factory=ServingRole)
    """Servers that read prompts."""
    decode: ServingRole = Field(default_factory=ServingRole)
    """Servers that write answers."""
    request_timeout_seconds: int = Field(default=600, ge=1, le=86400)
    """Seconds the Gateway waits for an answer."""


class PathwaysServing(Section):
    """JetStream with Pathways on static v6e slices."""

    name: fields.LwsName
    """Name of the LeaderWorkerSet, of its Service and in every selector."""
    namespace: fields.Namespace = "default"
    """Namespace of everything it makes."""
    mode: Literal["single", "disaggregated"]
    """single: Llama 3.1 405B on one 4x4 slice. disaggregated: Llama 2 70B on two 2x4 slices."""
    pools: list[fields.NodePoolName] = Field(min_length=1)
    """Multi-host pools that it fills, one a slice."""
    bucket: fields.BucketName
    """Scratch bucket: ours, made and removed with the stack."""
    checkpoint: fields.CheckpointUri
    """Converted checkpoint, gs://<bucket>/<path>; it is only read."""


class Safety(Section):
    """What the program may do that cannot be undone."""

    may_lose_capacity: bool = False
    """True: a change or a destroy may give reserved hosts back. False: the engine refuses both, as docs/changes.md says."""
    destroy_buckets: bool = False
    """True: a destroy removes our buckets with what they hold."""
    force_teardown: bool = False
    """True: a destroy clears finalizers that nobody serves any more."""
    live_checks: bool = True
    """False: ask Google nothing before the first resource."""


class Settings(Section):
    """Everything that a stack says."""

    project: fields.ProjectId
    """Project that everything is made in."""
    project_number: fields.ProjectNumber | None = None
    """Its number; without it, looked up."""
    zone: fields.Zone
    """Zone of the TPU hosts; the region follows."""
    network: Network = Field(default_factory=Network)
    """The network."""
    cluster: Cluster = Field(default_factory=Cluster)
    """The cluster."""
    slice_pools: list[SlicePool] = Field(default_factory=list)
    """tpu7x cubes, one entry a reservation block."""
    multihost_pools: list[MultihostPool] = Field(default_factory=list)
    """v6e slices."""
    charts: Charts = Field(default_factory=Charts)
    """Where charts come from."""
    slice_controller: SliceController = Field(default_factory=SliceController)
    """Flags of the slice controller."""
    queues: Queues = Field(default_factory=Queues)
    """Queues and priorities."""
    pd_serving: PdServing | None = None
    """Prefill and decode serving."""
    pathways_serving: fields.OneOrMany[PathwaysServing] = Field(default_factory=list)
    """Pathways serving: one, or a list."""
    hf_token: Any = Field(default=None, repr=False)
    """Hugging Face token, always a secret: an Output in a running program, opaque elsewhere."""
    safety: Safety = Field(default_factory=Safety)
    """What may not be undone."""

    @property
    def region(self) -> str:
        """The zone's region."""
        return locations.region_of(self.zone)

    @property
    def is_ai_zone(self) -> bool:
        """True when the TPU zone is an AI zone."""
        return locations.is_ai_zone(self.zone)

    @property
    def protects_reserved(self) -> bool:
        """True when the engine must refuse to give reserved hosts back."""
        return self.cluster.deletion_protection or not self.safety.may_lose_capacity

    @property
    def protects_cluster(self) -> bool:
        """True when it must refuse to delete or replace the cluster, which takes every pool with it."""
        reserved = [*self.slice_pools, *(pool for pool in self.multihost_pools if pool.reservation)]
        return self.cluster.deletion_protection or bool(reserved and self.protects_reserved)

    @property
    def cube_count(self) -> int:
        """Cubes of all slice pools."""
        return sum(pool.cubes for pool in self.slice_pools)

    @property
    def chip_count(self) -> int:
        """tpu7x chips of all slice pools: the quota of the ClusterQueue."""
        return sum(pool.chip_count for pool in self.slice_pools)

    @property
    def slice_pool_reservations(self) -> dict[str, str]:
        """Node pool name → exact reservation value, over all slice pools."""
        return {
            name: value
            for pool in self.slice_pools
            for name, value in pool.reservation_values(self.project).items()
        }


def load(config: Mapping[str, Any], *, now: datetime | None = None) -> Settings:
    """The settings that config holds, or `SettingsError` with everything that is wrong with it.

    `config` maps `gcp:project`, `tpu-slices:zone`, … to JSON texts as the engine hands them, or to structures
    as a stack file holds them; `{"secure": …}` stays closed.
    """
    settings = decode.settings_from(config, Settings, now=now)
    pool = settings.cluster.system_pool
    if pool.zones:
        return settings
    zones = locations.default_system_zones(settings.region)
    cluster = settings.cluster.model_copy(update={"system_pool": pool.model_copy(update={"zones": zones})})
    return settings.model_copy(update={"cluster": cluster})


def warnings(settings: Settings) -> list[str]:
    """What is allowed, yet only partly known to work; one sentence each."""
    return cautions.of(settings)


def from_pulumi() -> Settings:
    """The settings of the running program; raises one `pulumi.RunError` that holds all problems."""
    import pulumi
    from pulumi.runtime import config as runtime

    held = runtime.CONFIG.get() or runtime.get_config_env()
    secret = runtime.is_config_secret
    try:
        settings = load({key: Sealed(value) if secret(key) else value for key, value in held.items()})
    except SettingsError as error:
        raise pulumi.RunError(str(error)) from None
    if settings.hf_token is None:
        return settings
    return settings.model_copy(update={"hf_token": pulumi.Output.secret(settings.hf_token.content)})
