"""The add-on's fault knobs: what a test or a person asks the simulated hardware to do.

Owns the file `addon-knobs.yaml` in the cluster's folder: its schema, its defaults and reading it again when it
changes. Seconds in the file are seconds of the wall clock, as they stand; only the defaults (what the cloud takes)
are divided by the region's time scale. Refuses unknown keys, wrong types and negative times: a misspelt knob that
is passed over in silence would make a test prove nothing.
"""

from __future__ import annotations

import logging
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from simulator.files import write_atomically

log = logging.getLogger(__name__)

FILE_NAME = "addon-knobs.yaml"

FORMATION_SECONDS = 25.0
"""From SliceNotCreated to ACTIVE. GKE's own sample shows 23 s from creation to its last transition."""

DELETION_SECONDS = 10.0
"""From DEACTIVATING to INCOMPLETE. Assumed: the release notes say that slices form, and so go, in seconds."""

Seconds = Annotated[float, Field(ge=0, strict=False)]
Outcome = Literal["active", "degraded", "stalled", "failed", "lost"]


class _Strict(BaseModel):
    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, alias_generator=to_camel, populate_by_name=True
    )


class SliceKnobs(_Strict):
    """What happens to the Slices whose name matches; of several entries the first that matches counts."""

    match: str = "*"
    """A shell pattern over the Slice's name."""
    formation_seconds: Seconds | None = None
    deletion_seconds: Seconds | None = None
    label_delay_seconds: Seconds = 0.0
    """From ACTIVE until the hosts carry the slice's labels."""
    outcome: Outcome = "active"
    """`stalled` never leaves ACTIVATING; `failed` becomes FAILED, also when it is already active; `lost` is a
    critical failure of a formed slice: it is dismantled though nobody deleted it."""
    deletion_hangs: bool = False
    """It stays in DEACTIVATING until this is false again, or someone removes the finalizer."""


class PartitionKnobs(_Strict):
    """The state forced upon one partition, of whatever shape."""

    id: str
    state: Literal["HEALTHY", "DEGRADED", "UNHEALTHY", "UNSET", "INCOMPLETE"]
    """UNHEALTHY makes the wider partitions around it UNHEALTHY too; DEGRADED is known of whole cubes only."""


class HostKnobs(_Strict):
    """What is wrong with the hosts whose name matches."""

    match: str
    faulty: bool = False
    slice_label: str | None = None
    """A wrong value for the label that names the host's slice, once it has one."""


class Knobs(_Strict):
    """Everything in the file. An absent or empty file changes nothing."""

    slices: tuple[SliceKnobs, ...] = Field(default=(), strict=False)
    partitions: tuple[PartitionKnobs, ...] = Field(default=(), strict=False)
    hosts: tuple[HostKnobs, ...] = Field(default=(), strict=False)
    initialized: bool = True
    """False: the add-on has not judged any partition yet, so all are UNSET and no Slice can form."""

    def for_slice(self, name: str) -> SliceKnobs:
        return next((each for each in self.slices if fnmatchcase(name, each.match)), SliceKnobs())

    def is_faulty(self, host: str) -> bool:
        return any(each.faulty and fnmatchcase(host, each.match) for each in self.hosts)

    def slice_label(self, host: str) -> str | None:
        """The wrong slice label that the host is to carry, if one was asked for."""
        wrong = (each.slice_label for each in self.hosts if fnmatchcase(host, each.match))
        return next((label for label in wrong if label is not None), None)

    def forced_states(self) -> dict[str, str]:
        """Partition id to the state forced upon it."""
        return {each.id: each.state for each in self.partitions}


def parse(text: str) -> Knobs:
    """The knobs in a YAML (or JSON) text; `ValueError` lists everything that is wrong with it."""
    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(f"{FILE_NAME}: not YAML: {error}") from error
    try:
        return Knobs.model_validate({} if document is None else document)
    except ValidationError as error:
        lines = [
            f"{FILE_NAME}: {'.'.join(str(part) for part in each['loc']) or 'the file'}: {each['msg']}"
            f" (got {each['input']!r})"
            for each in error.errors()
        ]
        raise ValueError("\n".join(lines)) from error


def write(cluster_folder: Path, knobs: Knobs) -> None:
    """Put the knobs into force: the add-on sees the new file within a fraction of a second."""
    document = knobs.model_dump(by_alias=True, mode="json", exclude_defaults=True)
    write_atomically(cluster_folder / FILE_NAME, yaml.safe_dump(document, sort_keys=False))


class KnobsFile:
    """The knobs now in force. A file that cannot be read leaves the last good ones in force, and says so."""

    def __init__(self, cluster_folder: Path) -> None:
        self._path = cluster_folder / FILE_NAME
        self._text: str | None = None
        self.knobs = Knobs()
        self.error: str | None = None

    def refresh(self) -> bool:
        """Read the file again; whether the knobs changed."""
        try:
            text = self._path.read_text()
        except FileNotFoundError:
            text = ""
        if text == self._text:
            return False
        self._text = text
        try:
            knobs = parse(text)
        except ValueError as error:
            self.error = str(error)
            log.error("%s\nThe knobs from before stay in force.", error)
            return False
        self.error = None
        changed = knobs != self.knobs
        self.knobs = knobs
        if changed:
            log.info("knobs now in force: %s", knobs.model_dump_json(by_alias=True, exclude_defaults=True))
        return changed
