"""Which GKE version a request means, and whether it is offered.

GKE takes an exact version, a prefix (`1.36`, `1.36.0`), `latest`, or nothing (the channel's default). Refusals: GKE's
`Master version "…" is unsupported.` and `Node version "…" is unsupported.`, as users quote them.
"""

from __future__ import annotations

from facts.gke import GkeVersion
from simulator.cloud.errors import GoogleRefusal
from simulator.cloud.region_file import RegionFile


def resolve(region: RegionFile, asked: str | None, channel: str | None, what: str = "Master") -> str:
    """The exact version; `channel` None looks at every channel."""
    channels = [item for item in region.gke_channels if channel in (None, item.name)]
    offered = {version for item in channels for version in item.versions}
    if not channels:
        raise GoogleRefusal(f"Release channel {channel} has no versions in this region.", 400, "badRequest")
    if asked in (None, "", "-"):
        return channels[0].default
    matching = [
        version
        for version in offered
        if asked in ("latest", version) or version.startswith((f"{asked}.", f"{asked}-"))
    ]
    if not matching:
        raise GoogleRefusal(f'{what} version "{asked}" is unsupported.', 400, "badRequest")
    return max(matching, key=GkeVersion.parse)


def require_node_version(region: RegionFile, asked: str | None, master: str) -> str:
    """The version of a node pool; never newer than the control plane, nor more than two minors older."""
    if asked in (None, ""):
        return master
    version = master if asked == master else resolve(region, asked, None, "Node")
    node, control_plane = GkeVersion.parse(version), GkeVersion.parse(master)
    if node > control_plane:
        # Wording: GKE API, as users quote it.
        raise GoogleRefusal(
            f'Node version "{version}" must not have a greater version than master version "{master}".',
            400,
            "badRequest",
        )
    if node.minor < control_plane.minor - 2:
        # GKE versioning guide: nodes may be two minor versions behind; wording assumed.
        raise GoogleRefusal(
            f'Node version "{version}" is too old for master version "{master}".', 400, "badRequest"
        )
    return version
