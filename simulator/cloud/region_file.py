"""The region file: what a simulated region is made of, before anybody deploys anything.

Typed and strict: an unknown or doubled key, a wrong type, overlapping sub-blocks, a zone that is not there… are all
collected and raised as one `RegionFileError`, each with path, rule, value, reason and way out. The models are what
the rest of the simulator reads; `derive` makes one from a stack's settings instead of a file.
What changes while the region runs is not here but in the inventory.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Hashable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, field_validator
from pydantic.alias_generators import to_camel

from facts import gke, locations, names, tpu
from facts.refusal import Refusal, shown

_HOSTS = re.compile(r"^(\d+)-(\d+)$")


class RegionFileError(ValueError):
    """Everything that is wrong with a region file."""

    def __init__(self, source: str, problems: list[str]) -> None:
        self.problems = problems
        count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        super().__init__(f"{source}: {count}\n" + "\n".join(f"- {problem}" for problem in problems))


def _exact_version(text: str) -> str:
    gke.GkeVersion.parse(text)
    return text


Name = Annotated[str, Field(pattern=names.GCE_NAME)]
ProjectId = Annotated[str, Field(pattern=names.PROJECT_ID)]
Zone = Annotated[str, AfterValidator(locations.check_zone)]
Version = Annotated[str, AfterValidator(_exact_version)]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=to_camel, populate_by_name=True)


class ZoneFacts(_Model):
    """A zone of the region."""

    name: Zone
    parent: Zone | None = None
    """An AI zone's parent: the ordinary zone whose control services it shares."""


class TpuQuota(_Model):
    """How many chips of a family a project may use on demand in the region."""

    family: Literal["CT6E"]
    chips: int = Field(ge=0)


class Project(_Model):
    """A project as it is before the first deployment."""

    id: ProjectId
    number: str = Field(pattern=names.PROJECT_NUMBER)
    enabled_apis: list[str] = Field(default_factory=list)
    """APIs that are on already; `serviceusage.googleapis.com` must be, or no other could be switched on."""
    preview_features: list[Name] = Field(default_factory=list)
    """Compute preview features that are on already."""
    tpu_quotas: list[TpuQuota] = Field(default_factory=list)
    """Families that are not listed have no limit here."""


class Channel(_Model):
    """What GKE offers in a release channel."""

    name: Literal["RAPID", "REGULAR", "STABLE", "EXTENDED"]
    default: Version
    versions: list[Version] = Field(min_length=1)


class Maintenance(_Model):
    """Planned maintenance of a sub-block, as the Compute API reports it."""

    state: Literal["PENDING", "ONGOING"]
    window_start: datetime
    window_end: datetime


class SubBlock(_Model):
    """Sixteen hosts that are wired as one cube."""

    name: Name
    hosts: str
    """The hosts of the block that it holds: `0-15`, the next sub-block `16-31`."""
    health: Literal["HEALTHY", "DEGRADED"] = "HEALTHY"
    """DEGRADED: some links between its chips are down; only the whole cube shows it."""
    unhealthy_hosts: list[int] = Field(default_factory=list)
    """Hosts (numbers of the block) on which no VM can start."""
    in_use_host_count: int = Field(default=0, ge=0)
    """Hosts that others hold already, counted from the highest."""
    maintenance: Maintenance | None = None

    @field_validator("hosts")
    @classmethod
    def _is_a_cube(cls, text: str) -> str:
        match = _HOSTS.match(text)
        count = int(match[2]) - int(match[1]) + 1 if match else 0
        if count != tpu.HOSTS_PER_CUBE:
            raise Refusal(
                f"must name {tpu.HOSTS_PER_CUBE} hosts in a row, such as 0-15",
                got=text,
                reason="a sub-block is one cube of 4x4x4 chips, 4 chips a host",
                way_out="Give first and last host with a hyphen between them.",
            )
        return text

    @property
    def host_numbers(self) -> range:
        """Its hosts' numbers in the block."""
        match = _HOSTS.match(self.hosts)
        assert match is not None
        return range(int(match[1]), int(match[2]) + 1)

    @property
    def usable_host_numbers(self) -> list[int]:
        """Healthy hosts that nobody outside this region holds, in order."""
        numbers = list(self.host_numbers)[: len(self.host_numbers) - self.in_use_host_count]
        return [number for number in numbers if number not in self.unhealthy_hosts]


class Block(_Model):
    """A block of a reservation: its sub-blocks can be joined to super-slices."""

    name: Name
    sub_blocks: list[SubBlock] = Field(min_length=1)


class Reservation(_Model):
    """A reservation of TPU hosts in one zone."""

    name: Name
    project: ProjectId
    """The project that owns it."""
    zone: Zone
    machine_type: Literal["tpu7x-standard-4t", "ct6e-standard-4t"]
    shared_with: list[ProjectId] = Field(default_factory=list)
    """Other projects that may use it."""
    maintenance_interval: Literal["AS_NEEDED", "PERIODIC"] = "AS_NEEDED"
    end_time: datetime | None = None
    blocks: list[Block] = Field(default_factory=list)
    """Of a tpu7x reservation."""
    host_count: int | None = Field(default=None, ge=1)
    """Of a reservation without blocks."""


class Bucket(_Model):
    """A bucket that exists already, such as the one with the model's weights."""

    name: str = Field(pattern=names.BUCKET)
    project: ProjectId
    location: str
    is_empty: bool = False


class Existing(_Model):
    """A resource that somebody else has made, outside of any stack."""

    type: str
    inputs: dict[str, Any]


class Fault(_Model):
    """An operation that is to fail; `times` says how often (without it, always)."""

    operation: Literal["create", "update", "delete"]
    resource: str
    """The resource's name in the cloud, its id, or its type token."""
    fails_with: Literal["quota", "stockout", "timeout", "permission"]
    times: int | None = Field(default=None, ge=1)


class Knobs(_Model):
    """How the region behaves where life leaves a choice."""

    label_delay_seconds: float = Field(default=0, ge=0)
    """How long after a node is Ready its partition labels arrive (device plugin: up to a minute, or more)."""
    propagation_seconds: float = Field(default=0, ge=0)
    """How long after an API or a preview feature is switched on requests are still refused."""
    retried_creates: Literal["adopt", "conflict"] = "adopt"
    """A create whose client went away before it could keep the answer, tried again by the same stack: go on with it,
    or answer 409 as Google answers the real provider."""


class RegionFile(_Model):
    """A region before its first deployment."""

    region: str
    zones: list[ZoneFacts] = Field(min_length=1)
    projects: list[Project] = Field(min_length=1)
    gke_channels: list[Channel] = Field(min_length=1)
    reservations: list[Reservation] = Field(default_factory=list)
    buckets: list[Bucket] = Field(default_factory=list)
    existing: list[Existing] = Field(default_factory=list)
    knobs: Knobs = Field(default_factory=Knobs)
    faults: list[Fault] = Field(default_factory=list)

    def project(self, project_id: str) -> Project | None:
        """The project of that id."""
        return next((project for project in self.projects if project.id == project_id), None)

    def zone(self, name: str) -> ZoneFacts | None:
        """The zone of that name."""
        return next((zone for zone in self.zones if zone.name == name), None)

    @property
    def ordinary_zones(self) -> list[str]:
        """Zones that are no AI zones, in order."""
        return [zone.name for zone in self.zones if not locations.is_ai_zone(zone.name)]

    @property
    def offered_versions(self) -> set[str]:
        """Every GKE version that some channel offers."""
        return {version for channel in self.gke_channels for version in channel.versions}


def load(path: Path) -> RegionFile:
    """Read a region file; raises `RegionFileError` with everything that is wrong with it."""
    try:
        document = yaml.load(path.read_text(), Loader=_StrictLoader)  # noqa: S506 - a SafeLoader, made stricter
    except OSError as error:
        problem = f"cannot be read: {error.strerror}. Give the path of a region file to --region."
        raise RegionFileError(str(path), [problem]) from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise RegionFileError(str(path), [f"is no YAML: {' '.join(str(error).split())}"]) from None
    return parse(document, str(path))


def parse(document: object, source: str = "region") -> RegionFile:
    """The region that a decoded document describes."""
    if not isinstance(document, Mapping):
        raise RegionFileError(source, ["must be a mapping with `region`, `zones`, `projects`, … at the top"])
    try:
        region = RegionFile.model_validate(document)
    except ValidationError as error:
        raise RegionFileError(source, [_sentence(item) for item in error.errors()]) from None
    problems = list(_contradictions(region))
    if problems:
        raise RegionFileError(source, problems)
    return region


def dump(region: RegionFile) -> str:
    """The region as a file that `load` reads back."""
    document = region.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    return yaml.safe_dump(document, sort_keys=False)


class _StrictLoader(yaml.SafeLoader):
    """A key given twice is an error, not the last one's win."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen = set()
        for key_node, _value in node.value:
            key = self.construct_object(key_node, deep=True)
            if key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key!r} is given twice", key_node.start_mark
                )
            seen.add(key)
        return super().construct_mapping(node, deep)


def _sentence(error: Mapping[str, Any]) -> str:
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error["loc"]).lstrip(".")
    refusal = error.get("ctx", {}).get("error")
    if isinstance(refusal, Refusal):
        return f"`{path}` {refusal}"
    kind, value = error["type"], error["input"]
    if kind == "extra_forbidden":
        return f"`{path}` is no key of a region file: remove it, or check its spelling."
    if kind == "missing":
        return f"`{path}` must be given: a region without it could not answer."
    return f"`{path}` is refused (got {shown(value)}): {error['msg'][0].lower()}{error['msg'][1:]}."


def _contradictions(region: RegionFile) -> Iterator[str]:
    yield from _doubles("zones", [zone.name for zone in region.zones])
    yield from _doubles("projects", [project.id for project in region.projects])
    yield from _doubles("projects", [project.number for project in region.projects])
    yield from _doubles("gkeChannels", [channel.name for channel in region.gke_channels])
    yield from _doubles("buckets", [bucket.name for bucket in region.buckets])
    yield from _doubles("reservations", [f"{item.project}/{item.name}" for item in region.reservations])
    for index, zone in enumerate(region.zones):
        yield from _zone_problems(region, zone, f"zones[{index}]")
    for index, channel in enumerate(region.gke_channels):
        if channel.default not in channel.versions:
            yield (
                f"`gkeChannels[{index}].default` must be one of the channel's versions (got {channel.default}): "
                "GKE offers what it defaults to. Add it to `versions`."
            )
    owners = [(f"buckets[{index}].project", bucket.project) for index, bucket in enumerate(region.buckets)]
    for index, reservation in enumerate(region.reservations):
        owners.append((f"reservations[{index}].project", reservation.project))
        owners += [(f"reservations[{index}].sharedWith", project) for project in reservation.shared_with]
        yield from _reservation_problems(region, reservation, f"reservations[{index}]")
    for path, project in owners:
        if region.project(project) is None:
            yield f"`{path}` must name one of `projects` (got {project}): it is not there. Add it to `projects`."


def _zone_problems(region: RegionFile, zone: ZoneFacts, path: str) -> Iterator[str]:
    if locations.region_of(zone.name) != region.region:
        yield (
            f"`{path}.name` must lie in `region` (got {zone.name}, region {region.region}): one file describes one "
            "region. Remove the zone, or change `region`."
        )
    is_ai_zone = locations.is_ai_zone(zone.name)
    if is_ai_zone and (zone.parent is None or region.zone(zone.parent) is None):
        yield (
            f"`{path}.parent` must name an ordinary zone of this file (got {shown(zone.parent)}): an AI zone has a "
            "parent zone. Add it."
        )
    if not is_ai_zone and zone.parent is not None:
        yield f"`{path}.parent` is only for AI zones (got {zone.parent} on {zone.name}). Remove it."


def _reservation_problems(region: RegionFile, reservation: Reservation, path: str) -> Iterator[str]:
    if region.zone(reservation.zone) is None:
        yield f"`{path}.zone` must be one of `zones` (got {reservation.zone}): it is not there. Add the zone."
    if bool(reservation.blocks) == (reservation.host_count is not None):
        yield (
            f"`{path}` must have either `blocks` or `hostCount`: blocks hold cubes, a count holds single hosts. "
            "Keep the one that fits the machine type."
        )
    if reservation.machine_type == "tpu7x-standard-4t" and not reservation.blocks:
        yield f"`{path}.blocks` must be given for {reservation.machine_type}: its hosts are wired in cubes. Add them."
    yield from _doubles(f"{path}.blocks", [block.name for block in reservation.blocks])
    for index, block in enumerate(reservation.blocks):
        yield from _block_problems(block, f"{path}.blocks[{index}]")


def _block_problems(block: Block, path: str) -> Iterator[str]:
    yield from _doubles(f"{path}.subBlocks", [sub_block.name for sub_block in block.sub_blocks])
    for first, second in itertools.combinations(block.sub_blocks, 2):
        shared = set(first.host_numbers) & set(second.host_numbers)
        if shared:
            yield (
                f"`{path}.subBlocks` must not overlap (got {first.name} hosts {first.hosts} and {second.name} hosts "
                f"{second.hosts}): host {min(shared)} would be wired into two cubes. Give each its own hosts."
            )
    for index, sub_block in enumerate(block.sub_blocks):
        foreign = [number for number in sub_block.unhealthy_hosts if number not in sub_block.host_numbers]
        if foreign:
            yield (
                f"`{path}.subBlocks[{index}].unhealthyHosts` must be hosts of {sub_block.name} (got {foreign}): it "
                f"holds {sub_block.hosts}. Name hosts of this sub-block."
            )
        if sub_block.in_use_host_count > len(sub_block.host_numbers):
            yield (
                f"`{path}.subBlocks[{index}].inUseHostCount` must be at most {len(sub_block.host_numbers)} (got "
                f"{sub_block.in_use_host_count}): it has no more hosts. Lower it."
            )


def _doubles(path: str, keys: list[str]) -> Iterator[str]:
    for key in sorted({key for key in keys if keys.count(key) > 1}):
        yield f"`{path}` must not list {key} twice: which of the two would be meant? Remove one."
