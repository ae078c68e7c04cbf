"""Every Kubernetes label, taint and annotation key that the platform reads or writes.

Owns the spelling of keys and their fixed values. Sources: Google's TPU device plugin, the GKE guides on
dynamic slicing, Kueue 0.18.2, JobSet 0.12.0, LWS 0.8.0 (seen 2026-12-01). Refuses keys that only old drafts
used (`gke-tpu-partition-id-4x4x4`, `gke-tpu-reservation-subblock`): nothing sets them any more.
"""

from typing import Final

# --- Nodes -------------------------------------------------------------------------------------------------
HOSTNAME: Final = "kubernetes.io/hostname"
ZONE: Final = "topology.kubernetes.io/zone"
REGION: Final = "topology.kubernetes.io/region"
INSTANCE_TYPE: Final = "node.kubernetes.io/instance-type"
NODE_POOL: Final = "cloud.google.com/gke-nodepool"
TPU_ACCELERATOR: Final = "cloud.google.com/gke-tpu-accelerator"
ACCELERATOR_COUNT: Final = "cloud.google.com/gke-accelerator-count"
# A label on tpu7x nodes (device plugin, OME), though one guide shows it as an annotation.
TOPOLOGY_MODE: Final = "cloud.google.com/gke-accelerator-topology-mode"
TOPOLOGY_MODE_PROVISION_ONLY: Final = "PROVISION_ONLY"
# Static pools carry it always; PROVISION_ONLY hosts only while they belong to an active Slice.
TPU_TOPOLOGY: Final = "cloud.google.com/gke-tpu-topology"
# Set by the GKE add-on while the host belongs to an active Slice; never edited by hand.
TPU_SLICE: Final = "cloud.google.com/gke-tpu-slice"
TOPOLOGY_BLOCK: Final = "cloud.google.com/gce-topology-block"
TOPOLOGY_SUB_BLOCK: Final = "cloud.google.com/gce-topology-subblock"
TOPOLOGY_HOST: Final = "cloud.google.com/gce-topology-host"
RESERVATION_NAME: Final = "cloud.google.com/reservation-name"
CREATED_BY_MIG: Final = "node.gke.io/created-by-mig"


def partition_id(shape: str) -> str:
    """The node label that holds the id of the partition of that shape to which the host belongs."""
    return f"cloud.google.com/gke-tpu-partition-{shape}-id"


def partition_state(shape: str) -> str:
    """The node label that holds the health of the partition of that shape to which the host belongs."""
    return f"cloud.google.com/gke-tpu-partition-{shape}-state"


PARTITION_HEALTHY: Final = "HEALTHY"
# Only a whole cube (4x4x4) can be degraded.
PARTITION_DEGRADED: Final = "DEGRADED"
PARTITION_UNHEALTHY: Final = "UNHEALTHY"
PARTITION_UNSET: Final = "UNSET"
PARTITION_INCOMPLETE: Final = "INCOMPLETE"
PARTITION_STATES: Final = (
    PARTITION_HEALTHY,
    PARTITION_DEGRADED,
    PARTITION_UNHEALTHY,
    PARTITION_UNSET,
    PARTITION_INCOMPLETE,
)

# The resource, the taint and, as the codelab's `kubectl get nodes -l` expects, the label share one key.
TPU_RESOURCE: Final = "google.com/tpu"
TPU_TAINT: Final = "google.com/tpu"
TPU_TAINT_VALUE: Final = "present"
TPU_TAINT_EFFECT: Final = "NoSchedule"
# Seen in the codelab only; the vendor documents the taint. Assumed: we set the label ourselves.
TPU_PRESENT: Final = "google.com/tpu"

# --- Pods and workloads ------------------------------------------------------------------------------------
TPU_SLICE_TOPOLOGY: Final = "cloud.google.com/gke-tpu-slice-topology"
SKIP_TPU_WEBHOOK_CHECK: Final = "cloud.google.com/skip-tpu-webhook-check"
GCSFUSE_VOLUMES: Final = "gke-gcsfuse/volumes"
QUEUE_NAME: Final = "kueue.x-k8s.io/queue-name"
PRIORITY_CLASS: Final = "kueue.x-k8s.io/priority-class"
PODSET_REQUIRED_TOPOLOGY: Final = "kueue.x-k8s.io/podset-required-topology"
PODSET_PREFERRED_TOPOLOGY: Final = "kueue.x-k8s.io/podset-preferred-topology"
PODSET_SLICE_REQUIRED_TOPOLOGY: Final = "kueue.x-k8s.io/podset-slice-required-topology"
PODSET_SLICE_SIZE: Final = "kueue.x-k8s.io/podset-slice-size"
PODSET_GROUP_NAME: Final = "kueue.x-k8s.io/podset-group-name"
JOBSET_NAME: Final = "jobset.sigs.k8s.io/jobset-name"
JOBSET_REPLICATED_JOB_NAME: Final = "jobset.sigs.k8s.io/replicatedjob-name"
JOBSET_JOB_INDEX: Final = "jobset.sigs.k8s.io/job-index"
JOBSET_EXCLUSIVE_TOPOLOGY: Final = "alpha.jobset.sigs.k8s.io/exclusive-topology"
LWS_NAME: Final = "leaderworkerset.sigs.k8s.io/name"
LWS_GROUP_INDEX: Final = "leaderworkerset.sigs.k8s.io/group-index"
LWS_WORKER_INDEX: Final = "leaderworkerset.sigs.k8s.io/worker-index"
# Never together with Kueue's dynamic slices: leaders were seen in other groups' slices (Kueue 0.18.2).
LWS_EXCLUSIVE_TOPOLOGY: Final = "leaderworkerset.sigs.k8s.io/exclusive-topology"
LWS_SUB_GROUP_EXCLUSIVE_TOPOLOGY: Final = "leaderworkerset.sigs.k8s.io/subgroup-exclusive-topology"
MANAGED_BY: Final = "app.kubernetes.io/managed-by"
NAMESPACE_NAME: Final = "kubernetes.io/metadata.name"

# --- Slices and the two controllers ------------------------------------------------------------------------
SLICE_GROUP: Final = "accelerator.gke.io"
SLICE_FINALIZER: Final = "accelerator.gke.io/slice-finalizer"
SLICE_RETRY_ON_FAILURE: Final = "slice.gke.io/retry-on-failure"
ADMISSION_CHECK_CONTROLLER: Final = "accelerator.gke.io/slice"
WORKLOAD_FINALIZER: Final = "accelerator.gke.io/slice"
SLICE_OWNER_NAMESPACE: Final = "accelerator.gke.io/owner-workload-namespace"
SLICE_OWNER_NAME: Final = "accelerator.gke.io/owner-workload-name"
SLICE_OWNER_PODSET: Final = "accelerator.gke.io/owner-podset-name"

# --- Workload identity -------------------------------------------------------------------------------------
GCP_SERVICE_ACCOUNT: Final = "iam.gke.io/gcp-service-account"
