"""The Google APIs and the preview feature that everything else needs.

Owns the enabling, never the disabling: a project's APIs and its view of AI zones are shared with whoever else works
there, so a destroy leaves them on. Refuses to enable anything that no component calls; what GKE itself needs
(logging, monitoring, storage) comes with container.googleapis.com, which enables its own dependencies.
"""

from dataclasses import dataclass

import pulumi
import pulumi_gcp as gcp

from components import readiness

APIS = ("container", "compute", "iam", "cloudresourcemanager", "file", "networkservices")
AI_ZONES_FEATURE = "ai-zones-visibility"


@dataclass(frozen=True, kw_only=True)
class ProjectServicesArgs:
    """What `ProjectServices` is told."""

    project: str
    """Project whose APIs are enabled."""
    sees_ai_zones: bool
    """True when the TPU zone is an AI zone, which a project sees only with the preview feature."""


class ProjectServices(pulumi.ComponentResource):
    """Enabled APIs and, for an AI zone, the preview feature that shows it."""

    apis: pulumi.Output[list[str]]
    """The enabled APIs, by their full names."""

    def __init__(
        self, name: str, args: ProjectServicesArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("tpu-slices:index:ProjectServices", name, {}, opts)

        services = {
            api: gcp.projects.Service(
                f"{name}-{api}",
                project=args.project,
                service=f"{api}.googleapis.com",
                # The seed's project keeps its APIs too; disabling one would stop strangers' workloads.
                disable_on_destroy=False,
                opts=pulumi.ResourceOptions(parent=self),
            )
            for api in APIS
        }
        if args.sees_ai_zones:
            gcp.compute.PreviewFeature(
                f"{name}-ai-zones",
                project=args.project,
                name=AI_ZONES_FEATURE,
                activation_status="ENABLED",
                rollout_operation={"rollout_input": {"predefined_rollout_plan": "ROLLOUT_PLAN_FAST_ROLLOUT"}},
                opts=pulumi.ResourceOptions(
                    parent=self,
                    # The feature belongs to the compute API, which no input mentions.
                    depends_on=[services["compute"]],
                    hooks=readiness.ask_until(f"{name}-ai-zones-api", readiness.ENABLED_API),
                    # Project-wide, like the APIs: others may see AI zones through it.
                    retain_on_delete=True,
                ),
            )

        self.apis = pulumi.Output.all(*(service.service for service in services.values()))
        self.register_outputs({"apis": self.apis})
