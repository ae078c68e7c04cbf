"""Texts that point somewhere: object paths, gs:// addresses, chart folders, placeholders.

Owns what a filled-in text looks like. Refuses, with `ValueError`, templates that nobody filled in: the seeds'
scripts replaced MODEL_WEIGHT_BUCKET and ${NAMESPACE} by text, and a leftover passed silently.
"""

import re
from collections.abc import Iterable
from typing import Final

from facts.refusal import Refusal

_PLACEHOLDER: Final = re.compile(
    r"\$\{|\$\(|\{\{|<[^>]*>|…|\.\.\.|\b(YOUR|MY|CHANGE|REPLACE|TODO|FIXME|EXAMPLE|MODEL_WEIGHT|PATHWAYS|CHECKPOINT|BUCKET|PROJECT|CLUSTER)_\w+"
    r"|\b[A-Z]+_(BUCKET|PATH|NAME|ID)\b"
)

MODEL_NAME: Final = r"^[A-Za-z0-9][-_.A-Za-z0-9]*(/[A-Za-z0-9][-_.A-Za-z0-9]*)?$"


def counted(count: int, noun: str) -> str:
    """`1 cube`, `2 cubes`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def listed(items: Iterable[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    *first, last = items
    return f"{', '.join(first)} and {last}" if first else last


def check_model_name(value: str) -> str:
    """The value, if it is a model's name, whose last part also becomes a label."""
    check_filled(value)
    label = value.rsplit("/", 1)[-1]
    if re.match(MODEL_NAME, value) and len(label) <= 63 and label[-1].isalnum():
        return value
    raise Refusal(
        "must be <owner>/<model> as Hugging Face spells it, the model at most 63 characters",
        got=value,
        reason="clients ask for this name, and its last part becomes a label of the pods",
        way_out="Write for instance Qwen/Qwen3.5-397B-A17B-FP8.",
    )


def check_filled(value: str) -> str:
    """The value, if it is a text that somebody filled in."""
    if not value.strip():
        raise Refusal(
            "must not be empty", reason="it names something", way_out="Fill it in, or remove the key."
        )
    if value != value.strip():
        raise Refusal(
            "must not begin or end with a space",
            got=repr(value),
            reason="it would become part of the name",
            way_out="Remove the space.",
        )
    found = _PLACEHOLDER.search(value)
    if found:
        raise Refusal(
            "must be filled in",
            got=value,
            reason=f"{found[0]} is a placeholder that nothing replaces",
            way_out="Write the real value.",
        )
    return value


def check_object_path(value: str) -> str:
    """The value, if it is a path inside a bucket."""
    check_filled(value)
    if value.startswith(("gs://", "/")) or value.endswith("/") or "//" in value:
        raise Refusal(
            "must be a path inside the bucket, without gs://, a leading, a trailing or a double slash",
            got=value,
            reason="it is joined to the bucket as gs://<bucket>/<path>",
            way_out="Write for instance models--Qwen--Qwen3/snapshots/<revision>.",
        )
    return value


def check_gs_uri(value: str) -> str:
    """The value, if it is gs://bucket/path."""
    check_filled(value)
    if not re.fullmatch(r"gs://[a-z0-9][-_.a-z0-9]{1,61}[a-z0-9]/[^/].*", value) or "//" in value[5:]:
        way_out = f"Write gs://{value}." if re.fullmatch(r"[a-z0-9][-_.a-z0-9]+/.+", value) else ""
        raise Refusal(
            "must be gs://<bucket>/<path>",
            got=value,
            reason="the server is handed this address as it is",
            way_out=way_out or "Write for instance gs://checkpoints/int8.",
        )
    return value


def check_chart_source(value: str) -> str:
    """The value, if it is `oci` or a folder."""
    check_filled(value)
    if value == "oci":
        return value
    if "://" in value or value.startswith("~"):
        raise Refusal(
            "must be `oci` or a folder relative to the program",
            got=value,
            reason="the addresses of the charts stand in the version ledger, and nothing expands ~ here",
            way_out="Write oci, or .region/charts for the charts that `make up` links.",
        )
    return value
