"""Types of single fields: a text or number with its rule, and the same rule in the JSON Schema.

Owns the bridge from `facts`, which refuse with a reason and a way out, to pydantic. Refuses to know about more
than one field at a time.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema
from pydantic.alias_generators import to_camel

from facts import gke, locations, machines, maintenance, names, networks, reservations, text, tpu

T = TypeVar("T")


class Section(BaseModel):
    """A frozen mapping with exactly these keys, spelt in camelCase in YAML."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, alias_generator=to_camel, use_attribute_docstrings=True
    )


def _named(
    what: str, reason: str, *, pattern: str = names.GCE_NAME, length: int = names.GCE_NAME_LENGTH
) -> tuple[AfterValidator, Any]:
    def check(value: str) -> str:
        return names.check(value, pattern=pattern, length=length, what=what, reason=reason)

    return AfterValidator(check), Field(json_schema_extra={"pattern": pattern, "maxLength": length})


def _checked(check: Callable[[str], str], **schema: Any) -> tuple[AfterValidator, Any]:
    return AfterValidator(check), Field(json_schema_extra=schema)


ProjectId = Annotated[str, *_checked(names.check_project_id, pattern=names.PROJECT_ID)]
ProjectNumber = Annotated[str, *_checked(names.check_project_number, pattern=names.PROJECT_NUMBER)]
Zone = Annotated[str, *_checked(locations.check_zone, pattern=locations.ZONE)]
GceName = Annotated[str, *_named("name", "Compute Engine accepts no other name")]
# In YAML they may be paths; they are judged after the paths were taken apart.
ReservationName = Annotated[
    str,
    AfterValidator(reservations.check_name),
    WithJsonSchema({"type": "string", "minLength": 1}),
]
ReservationPart = Annotated[
    str,
    *_named("name", "Compute Engine accepts no other name"),
    WithJsonSchema({"type": "string", "minLength": 1}),
]
NetworkPrefix = Annotated[
    str,
    *_named(
        "prefix",
        "the longest name made from it must fit Compute Engine's 63 characters",
        length=names.NETWORK_PREFIX_LENGTH,
    ),
]
ClusterName = Annotated[
    str, *_named("cluster name", "GKE accepts no other cluster name", length=names.CLUSTER_NAME_LENGTH)
]
NodePoolName = Annotated[
    str, *_named("pool name", "GKE accepts no other pool name", length=names.NODE_POOL_NAME_LENGTH)
]
QueueName = Annotated[
    str,
    *_named("name", "workloads carry it in a label", pattern=names.DNS_LABEL, length=names.LABEL_LENGTH),
]
Namespace = Annotated[
    str, *_checked(names.check_namespace, pattern=names.GCE_NAME, maxLength=names.LABEL_LENGTH)
]
LwsName = Annotated[
    str,
    *_named("name", "the LeaderWorkerSet, its Service and its pods take it", length=names.LWS_NAME_LENGTH),
]
BucketName = Annotated[str, *_checked(names.check_bucket, pattern=names.BUCKET)]
ModelName = Annotated[str, *_checked(text.check_model_name, pattern=text.MODEL_NAME)]
ModelPath = Annotated[str, *_checked(text.check_object_path, pattern="^[^/].*[^/]$")]
CheckpointUri = Annotated[str, *_checked(text.check_gs_uri, pattern="^gs://[^/]+/[^/]")]
ChartSource = Annotated[str, *_checked(text.check_chart_source)]
Cidr = Annotated[str, *_checked(networks.check_cidr, pattern=networks.CIDR)]
GkeVersionText = Annotated[
    str, BeforeValidator(gke.check_is_text), *_checked(gke.check_version, pattern=gke.VERSION)
]
CpuMachineType = Annotated[str, *_checked(machines.check_system_machine_type)]
SliceMachineType = Annotated[str, *_checked(tpu.check_slice_machine_type, enum=tpu.machine_types("dynamic"))]
MultihostMachineType = Annotated[
    str, *_checked(tpu.check_multihost_machine_type, enum=tpu.machine_types("static"))
]
SliceTopology = Annotated[str, *_checked(tpu.check_slice_topology, pattern=tpu.SLICE_TOPOLOGY)]
StaticTopology = Annotated[
    str, *_checked(tpu.check_static_topology, enum=list(tpu.MACHINES["ct6e-standard-4t"].topologies))
]
Instant = Annotated[
    datetime,
    BeforeValidator(maintenance.parse_instant),
    WithJsonSchema({"type": "string"}),
]
ControlPlaneAccess = Annotated[
    str | list[str],
    BeforeValidator(networks.check_control_plane_access),
    WithJsonSchema(
        {
            "anyOf": [
                {"enum": ["dns", "public"]},
                {"type": "array", "minItems": 1, "items": {"type": "string", "pattern": networks.CIDR}},
            ]
        }
    ),
]


def _one_or_many(value: Any) -> Any:
    return [value] if isinstance(value, dict) else value


def _or_one(schema: dict[str, Any]) -> None:
    """Let a list's schema accept one item alone."""
    many = {key: schema.pop(key) for key in ("type", "items") if key in schema}
    schema["anyOf"] = [many, many["items"]]


def _or_path(schema: dict[str, Any]) -> None:
    """Let a reservation's schema accept its path as a text."""
    own = {key: schema.pop(key) for key in ("$ref", "anyOf") if key in schema}
    path = {
        "type": "string",
        "description": "Name or path of the reservation, in any form that Google prints.",
    }
    schema["anyOf"] = [*own.pop("anyOf", [own]), path]


OneOrMany = Annotated[list[T], BeforeValidator(_one_or_many), Field(json_schema_extra=_or_one)]
ReservationForm = Annotated[T, BeforeValidator(reservations.taken_apart), Field(json_schema_extra=_or_path)]
