"""Keys: which exist, which was meant, and which people try that cannot exist.

Owns the advice for a key that no section has. Refuses to accept any of them.
"""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

from pydantic import BaseModel

from facts.refusal import Refusal
from preflight.problems import NAMESPACE, Problem

# Keys that people bring along from other tools → why there is none here, and what to do.
_NEVER = {
    "autoscaling": "the pools hold reserved hosts, sixteen a cube, always all of them",
    "minNodeCount": "the pools hold reserved hosts, sixteen a cube, always all of them",
    "maxNodeCount": "the pools hold reserved hosts, sixteen a cube, always all of them",
    "minNodes": "the pools hold reserved hosts, sixteen a cube, always all of them",
    "maxNodes": "the pools hold reserved hosts, sixteen a cube, always all of them",
    "flexStart": "PROVISION_ONLY needs a specific reservation and excludes flex-start",
    "queuedProvisioning": "PROVISION_ONLY needs a specific reservation and excludes queued provisioning",
    "spot": "PROVISION_ONLY needs a specific reservation and excludes spot",
    "preemptible": "PROVISION_ONLY needs a specific reservation and excludes preemptible hosts",
    "nodeCount": "a pool's hosts follow from its shape: sixteen a cube, chips / 4 for a static topology",
    "hostCount": "a pool's hosts follow from its shape: sixteen a cube, chips / 4 for a static topology",
    "size": "hosts and group sizes follow from the shape",
    "region": "the region follows from the zone",
    "chips": "the quota is computed from the pools",
    "quota": "the quota is computed from the pools",
}
_FOREIGN = {
    "gcp:zone": "The zone is `tpu-slices:zone`",
    "gcp:region": "The region follows from `tpu-slices:zone`",
    "gcp:credentials": "Credentials come from the environment, never from a stack file",
    "gcp:accessToken": "Credentials come from the environment, never from a stack file",
}


def full_name(key: Any) -> str:
    """The key as the engine knows it: without a namespace it is the project's own."""
    return str(key) if ":" in str(key) else f"{NAMESPACE}:{key}"


def given_twice(key: str) -> Problem:
    """The problem of a key that a file holds with and without its namespace."""
    refusal = Refusal(
        "must be given once",
        reason=f"`{key.partition(':')[2]}` and `{key}` are the same key to the engine",
        way_out="Remove one of them.",
    )
    return Problem(key, str(refusal))


def section_keys(model: type[BaseModel]) -> list[str]:
    """The keys of a model as YAML spells them."""
    return [field.alias or name for name, field in model.model_fields.items()]


def nearest(key: str, known: Iterable[str]) -> str | None:
    """The known key that was probably meant: other case, `-` or `_`, or a slip of the finger."""
    folded = {_fold(name): name for name in known}
    match = get_close_matches(_fold(key), folded, n=1, cutoff=0.7)
    return folded[match[0]] if match else None


def _fold(key: str) -> str:
    return key.lower().replace("_", "").replace("-", "")


def unknown_key(full_key: str, known: list[str]) -> Problem:
    """The problem of a top-level key that nothing reads."""
    namespace, _, name = full_key.partition(":")
    ours = [key for key in known if key != "project"]
    if full_key in _FOREIGN:
        way_out = f"{_FOREIGN[full_key]}. Remove the key."
    elif full_key == f"{NAMESPACE}:project":
        way_out = "The project is `gcp:project`."
    elif name == "project" and namespace not in ("gcp", NAMESPACE):
        way_out = "Did you mean `gcp:project`?"
    elif near := nearest(name, ours):
        way_out = f"Did you mean `{NAMESPACE}:{near}`?"
    else:
        way_out = f"Known are gcp:project and, after {NAMESPACE}:, {', '.join(ours)}."
    reason = "no part of the program reads it"
    return Problem(full_key, str(Refusal("must not be set", reason=reason, way_out=way_out)))


def unknown_inner_key(key: str, known: list[str], elsewhere: dict[str, str]) -> Refusal:
    """The refusal of a key inside a section; `elsewhere` says where else the program knows it."""
    if near := nearest(key, known):
        return Refusal("must not be set", reason="there is no such key", way_out=f"Did you mean `{near}`?")
    if key in _NEVER:
        return Refusal("must not be set", reason=_NEVER[key], way_out="Remove the key.")
    if key in elsewhere:
        return Refusal(
            "must not be set",
            reason="there is no such key here",
            way_out=f"It belongs to `{elsewhere[key]}`.",
        )
    return Refusal("must not be set", reason="there is no such key", way_out=f"Known are {', '.join(known)}.")


def places(schema: dict[str, Any]) -> dict[str, str]:
    """Key → where the contract has it; keys that several sections have are left out."""
    found: dict[str, set[str]] = {}

    def visit(node: dict[str, Any], path: str) -> None:
        for option in [node, *node.get("anyOf", [])]:
            reference = option.get("$ref") or option.get("items", {}).get("$ref")
            inner = schema["$defs"][reference.rsplit("/", 1)[-1]] if reference else option
            for key, child in inner.get("properties", {}).items():
                found.setdefault(key, set()).add(path)
                visit(child, f"{path}.{key}" if path else f"{NAMESPACE}:{key}")

    visit({"properties": schema["properties"]}, "")
    return {key: next(iter(paths)) or f"{NAMESPACE}:{key}" for key, paths in found.items() if len(paths) == 1}
