"""The simulated Google Cloud as the resource kinds see it: facts, state, time and faults in one object."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from simulator.cloud.cluster_files import ClusterFiles
from simulator.cloud.errors import GoogleRefusal
from simulator.cloud.faults import Faults
from simulator.cloud.inventory import Inventory
from simulator.cloud.operations import Clock
from simulator.cloud.region_file import Project, RegionFile

AI_ZONES_FEATURE = "ai-zones-visibility"
SERVICE = "gcp:projects/service:Service"


@dataclass
class Cloud:
    """One simulated region."""

    region: RegionFile
    inventory: Inventory
    clock: Clock
    faults: Faults
    clusters: ClusterFiles

    @classmethod
    def open(cls, folder: Path, region: RegionFile, time_scale: float = math.inf) -> Cloud:
        """The region of that folder, as it was left."""
        inventory = Inventory(folder / "inventory.json")
        faults = Faults(folder / "faults.json", region.faults, inventory)
        return cls(region, inventory, Clock(time_scale), faults, ClusterFiles(folder / "clusters"))

    def project(self, project_id: str) -> Project:
        """The project, or Google's refusal."""
        project = self.region.project(project_id)
        if project is None:
            # Wording: Resource Manager hides whether the project exists from callers without rights on it.
            raise GoogleRefusal(
                f"Permission denied on resource project {project_id}: it is not in this region's file",
                403,
                "forbidden",
            )
        return project

    def enabled_apis(self, project_id: str) -> set[str]:
        """APIs that are on in the project, and known to be on everywhere, now."""
        on = set(self.project(project_id).enabled_apis) - set(
            self.inventory.disabled_apis.get(project_id, [])
        )
        later = {
            switch.inputs["service"]
            for switch in self.inventory.switches.values()
            if switch.type == SERVICE
            and switch.inputs["project"] == project_id
            and self._has_spread(switch.since)
        }
        return on | later

    def _has_spread(self, since: float) -> bool:
        return time.time() - since >= self.clock.scaled(self.region.knobs.propagation_seconds)

    def require_api(self, project_id: str, api: str) -> None:
        """Google's refusal when the API is off.

        Wording: the `accessNotConfigured` answer of every Google API, widely quoted.
        """
        project = self.project(project_id)
        if api not in self.enabled_apis(project_id):
            raise GoogleRefusal(
                f"{api} has not been used in project {project.number} before or it is disabled. Enable it by visiting "
                f"https://console.developers.google.com/apis/api/{api}/overview?project={project.number} then retry. "
                "If you enabled this API recently, wait a few minutes for the action to propagate to our systems and "
                "retry.",
                403,
                "accessNotConfigured",
            )

    def sees_ai_zones(self, project_id: str) -> bool:
        """True if the project's preview feature for AI zones is on, and known to be on everywhere."""
        switch = self.inventory.switches.get(
            f"projects/{project_id}/global/previewFeatures/{AI_ZONES_FEATURE}"
        )
        if switch is None:
            return AI_ZONES_FEATURE in self.project(project_id).preview_features
        return switch.inputs["activationStatus"] == "ENABLED" and self._has_spread(switch.since)

    def visible_zones(self, project_id: str) -> list[str]:
        """Zones that the project may use, in order."""
        hides = not self.sees_ai_zones(project_id)
        return [zone.name for zone in self.region.zones if not (hides and zone.parent is not None)]

    def require_zones(self, project_id: str, zones: Iterable[str]) -> None:
        """Google's refusal for a zone that is not there, or that the project does not see.

        The exact wording for an AI zone without its preview feature was not found in public; assumed to be the one
        for any zone that does not exist (facts collected 2026-12-01).
        """
        visible = self.visible_zones(project_id)
        for zone in zones:
            if zone not in visible:
                raise GoogleRefusal(
                    f"Invalid value for field 'zone': '{zone}'. Unknown zone.", 400, "invalid"
                )
