"""Plans of the committed stacks, recorded once a test run, for tests to look into."""

import functools
from pathlib import Path
from typing import Any

from ops import provider_outputs, recording
from ops.recording import Recording, Registration
from preflight import stackfile

ROOT = Path(__file__).resolve().parents[2]
STACKS = sorted(path.name.split(".")[1] for path in ROOT.glob("Pulumi.*.yaml"))

CLUSTER = "gcp:container/cluster:Cluster"
NODE_POOL = "gcp:container/nodePool:NodePool"
CHART = "kubernetes:helm.sh/v4:Chart"


def config_of(stack: str) -> dict[str, Any]:
    """The config of a committed stack, free to be changed."""
    path = ROOT / f"Pulumi.{stack}.yaml"
    return stackfile.config_of(path.read_text(encoding="utf-8"), path.name)


def record(config: dict[str, Any], *, preview: bool = True, stack: str = "test") -> Recording:
    """The plan of a config."""
    texts, secret_keys = stackfile.engine_config(config)
    return recording.record(
        stack_name=stack,
        config=texts,
        secret_keys=secret_keys,
        preview=preview,
        outputs=recording.no_outputs if preview else provider_outputs.google,
    )


@functools.cache
def planned(stack: str) -> Recording:
    """What the first preview of a committed stack shows."""
    return record(config_of(stack), stack=stack)


@functools.cache
def deployed(stack: str) -> Recording:
    """What an update of a committed stack registers, with what Google would have answered."""
    return record(config_of(stack), preview=False, stack=stack)


def changed(stack: str, **sections: Any) -> Recording:
    """The plan of a committed stack with whole sections replaced; None removes one."""
    config = config_of(stack)
    for key, value in sections.items():
        full_key = f"tpu-slices:{key}"
        config.pop(full_key, None)
        if value is not None:
            config[full_key] = value
    return record(config)


def dependents_first(recording_: Recording, later: str, earlier: str) -> bool:
    """True when the resource named `later` depends on the one named `earlier`, directly or through others.

    Counted as the engine counts for a destroy: dependencies, provider and parent.
    """
    by_urn = recording_.registrations
    target = recording_.named(earlier).urn
    pending = [recording_.named(later).urn]
    seen: set[str] = set()
    while pending:
        urn = pending.pop()
        if urn == target:
            return True
        if urn not in seen and urn in by_urn:
            seen.add(urn)
            found: Registration = by_urn[urn]
            pending += [*found.depends_on, *filter(None, (found.parent, found.provider))]
    return False
