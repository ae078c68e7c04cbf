"""Name rules and the names that we generate from a setting.

Owns what each system accepts as a name, how long the longest generated name gets, and the generated names that
more than one place must agree on. Refuses, with `ValueError`, a name that any of its users would refuse later.
"""

import re
from hashlib import sha256
from typing import Final

from facts.refusal import Refusal
from facts.text import check_filled

# RFC 1035 labels as Compute Engine takes them.
GCE_NAME: Final = r"^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$"
# RFC 1123 labels: Kubernetes namespaces, label values, queue names.
DNS_LABEL: Final = r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"
PROJECT_ID: Final = r"^([a-z0-9.-]+:)?[a-z][-a-z0-9]{4,28}[a-z0-9]$"
PROJECT_NUMBER: Final = r"^[1-9][0-9]{5,18}$"
BUCKET: Final = r"^[a-z0-9][-_.a-z0-9]{1,61}[a-z0-9]$"

GCE_NAME_LENGTH: Final = 63
LABEL_LENGTH: Final = 63
# GKE: clusters and node pools (Container API reference, seen 2026-12-01).
CLUSTER_NAME_LENGTH: Final = 40
NODE_POOL_NAME_LENGTH: Final = 40
# LeaderWorkerSet under Kueue's integration (llm-d guide): see `lws_name_length`.
LWS_NAME_LENGTH: Final = 39
# GKE appends "-" and an 8-character cluster hash to a Slice's name and must stay within Compute Engine's 63.
SLICE_NAME_LENGTH: Final = 49
SLICE_NAME: Final = r"^[a-z]([-a-z0-9]*[a-z0-9])?$"
SERVICE_ACCOUNT_ID_LENGTH: Final = 30

# Namespaces that belong to Kubernetes, GKE and our controllers: no workload of ours lives there.
SYSTEM_NAMESPACES: Final = frozenset(
    {
        "default",
        "gke-managed-system",
        "gmp-public",
        "gmp-system",
        "jobset-system",
        "kube-node-lease",
        "kube-public",
        "kube-system",
        "kueue-system",
        "lws-system",
        "slice-controller-system",
    }
)

SYSTEM_POOL: Final = "system"
"""The node pool that runs the controllers."""

NETWORK_SUFFIXES: Final = {
    "network": "main",
    "subnet": "tpu",
    "proxy_subnet": "proxy",
    "firewall": "allow-internal",
    "router": "router",
    "nat": "nat",
}
"""Resource of `Network` → what follows the prefix, as the codelab names the first four."""

NETWORK_PREFIX_LENGTH: Final = GCE_NAME_LENGTH - 1 - max(map(len, NETWORK_SUFFIXES.values()))


def network_names(prefix: str) -> dict[str, str]:
    """Every explicit name of the network, by role."""
    return {role: f"{prefix}-{suffix}" for role, suffix in NETWORK_SUFFIXES.items()}


def slice_pool_names(pool: str, cube_count: int) -> list[str]:
    """Node pools of a slice pool entry: `<name>-1` upwards, append-only."""
    return [f"{pool}-{index}" for index in range(1, cube_count + 1)]


def lws_name_length(replicas: int) -> int:
    """Longest LeaderWorkerSet name under Kueue: leaderworkerset-<name>-<index>-<5 hex> must fit a label."""
    return LABEL_LENGTH - len("leaderworkerset-") - len(f"-{replicas - 1}-12345")


def slice_name(namespace: str, workload: str, podset: str, index: int) -> str:
    """The Slice that the slice controller makes for a podset: shortened with a digest where GKE wants it."""
    whole = f"{namespace}-{workload}-{podset}-{index}"
    if len(whole) <= SLICE_NAME_LENGTH:
        return whole
    digest = sha256(whole.encode()).hexdigest()[:5]
    return f"{whole[: SLICE_NAME_LENGTH - len(digest) - 1]}-{digest}"


def workload_policy_name() -> str:
    """The one PROVISION_ONLY workload policy of a stack, as the codelab names it."""
    return "superslice-policy"


def service_account_id(base: str, role: str) -> str:
    """`<base>-<role>` if it fits a service account id, else a shortened base with a digest of the whole."""
    whole = f"{base}-{role}"
    if len(whole) <= SERVICE_ACCOUNT_ID_LENGTH:
        return whole
    digest = sha256(whole.encode()).hexdigest()[:6]
    kept = base[: SERVICE_ACCOUNT_ID_LENGTH - len(role) - len(digest) - 2].rstrip("-")
    return f"{kept}-{digest}-{role}"


def check(value: str, *, pattern: str, length: int, what: str, reason: str) -> str:
    """The value if it is such a name; else a refusal that says which half of the rule it breaks."""
    check_filled(value)
    if len(value) > length:
        raise Refusal(
            f"must be at most {length} characters long",
            got=f"{value}, {len(value)} characters",
            reason=reason,
            way_out=f"Choose a shorter {what}.",
        )
    if re.match(pattern, value) is None:
        start = (
            "a lower-case letter" if pattern in (GCE_NAME, SLICE_NAME) else "a lower-case letter or a digit"
        )
        raise Refusal(
            f"must hold only lower-case letters, digits and hyphens, start with {start} and not end with a hyphen",
            got=value,
            reason=reason,
            way_out=f"Choose another {what}.",
        )
    return value


def check_project_id(value: str) -> str:
    """The value, if it is a project id."""
    if re.match(PROJECT_ID, value):
        return value
    number = value.isdigit()
    raise Refusal(
        "must be a project id: 6 to 30 lower-case letters, digits and hyphens, starting with a letter",
        got=value,
        reason="that is a project number" if number else "Google knows no project by such a name",
        way_out="`gcloud projects list` prints the id in its first column.",
    )


def check_namespace(value: str) -> str:
    """The value, if it is a namespace whose name may begin a Slice's name."""
    check(
        value,
        pattern=DNS_LABEL,
        length=LABEL_LENGTH,
        what="namespace",
        reason="Kubernetes accepts no other namespace",
    )
    if value[0].isdigit():
        raise Refusal(
            "must start with a letter",
            got=value,
            reason="the Slices of its workloads begin with the namespace, and GKE refuses a Slice that begins with a digit",
            way_out="Choose another namespace.",
        )
    return value


def check_bucket(value: str) -> str:
    """The value, if it is a bucket's bare name."""
    check_filled(value)
    if value.startswith("gs://"):
        raise Refusal(
            "must be the bucket's bare name",
            got=value,
            reason="the program puts gs:// in front where it is needed, and gs://gs://… reads nothing",
            way_out=f"Write {value.removeprefix('gs://').strip('/').split('/')[0] or 'the name'}.",
        )
    if not re.match(BUCKET, value) or ".." in value or "google" in value or value.startswith("goog"):
        raise Refusal(
            "must be a bucket name: 3 to 63 lower-case letters, digits, hyphens, underscores and dots, "
            "starting and ending with a letter or digit, without `google`",
            got=value,
            reason="Cloud Storage accepts no other name",
            way_out="Give the bucket's name as `gcloud storage ls` prints it, without gs://.",
        )
    return value


def check_project_number(value: str) -> str:
    """The value, if it is a project number."""
    if re.match(PROJECT_NUMBER, value):
        return value
    raise Refusal(
        "must be a project number: digits only",
        got=value,
        reason="Workload Identity's principals hold the number, not the id",
        way_out="`gcloud projects list` prints it in its last column; or remove the key, and it is looked up.",
    )
