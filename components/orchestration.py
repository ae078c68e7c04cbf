"""What runs on the cluster before any workload: JobSet, Kueue, LWS, the slice controller, and Kueue's queues.

Owns the order, both ways. Up: the three charts in parallel, then the slice controller (it watches their kinds), then
the queues once the webhooks answer and the admission check is active, then the namespaces that people work in. Down is
the exact reverse: a namespace empties while every controller still runs and clears its finalizers; then the queues go,
then the controllers, then their definitions.
Refuses to give Kueue a namespace that nobody named.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pulumi
import pulumi_kubernetes as k8s

from components import controller_charts, queue_objects, readiness
from components.controller_charts import ControllerChart
from components.kubernetes_object import KubernetesObject
from components.slice_controller import SliceController, SliceControllerArgs

# The provider's own word for "created" (it then waits for the condition, at most `QUEUE_TIMEOUTS.create`).
WAIT_FOR = "pulumi.com/waitFor"
ACTIVE = "condition=Active"
QUEUE_TIMEOUTS = pulumi.CustomTimeouts(create="5m", delete="10m")


@dataclass(frozen=True, kw_only=True)
class LocalQueueArgs:
    """A queue in a namespace."""

    name: str
    namespace: str


@dataclass(frozen=True, kw_only=True)
class QueuesArgs:
    """Kueue's queues over tpu7x cubes."""

    cube_count: int
    cluster_queue: str
    local_queues: tuple[LocalQueueArgs, ...]
    priority_classes: Mapping[str, int]
    """Name → value."""
    slice_controller: SliceControllerArgs
    hosts: Sequence[pulumi.Resource]
    """The pools behind the quota."""


@dataclass(frozen=True, kw_only=True)
class OrchestrationArgs:
    """What `Orchestration` is told."""

    chart_source: str
    """`oci`, or a folder that holds kueue, jobset and lws."""
    queues: QueuesArgs | None
    """None where slices are static: then LWS alone is installed, as in the v6e tutorial."""


class Orchestration(pulumi.ComponentResource):
    """Controllers and queues."""

    cluster_queue: pulumi.Output[str | None]
    """Name of the ClusterQueue; available once it is active."""
    namespaces: dict[str, pulumi.Output[str]]
    """Namespaces that have a queue, by name; available once workloads may be submitted."""

    def __init__(
        self, name: str, args: OrchestrationArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("tpu-slices:index:Orchestration", name, {}, opts)

        lws = self._chart(name, controller_charts.leader_worker_set(), args.chart_source)
        self.cluster_queue = pulumi.Output.from_input(None)
        self.namespaces = {}
        if args.queues is not None:
            managed = [queue.namespace for queue in args.queues.local_queues]
            jobset = self._chart(name, controller_charts.jobset(), args.chart_source)
            kueue = self._chart(name, controller_charts.kueue(managed), args.chart_source)
            slice_controller = SliceController(
                f"{name}-slice-controller",
                args.queues.slice_controller,
                pulumi.ResourceOptions(
                    parent=self,
                    # It watches Workloads, JobSets and LeaderWorkerSets from its start on.
                    depends_on=[kueue, jobset, lws],
                ),
            )
            self._queues(name, args.queues, [kueue, jobset, lws, slice_controller])

        self.register_outputs({"cluster_queue": self.cluster_queue, "namespaces": self.namespaces})

    def _chart(self, name: str, chart: ControllerChart, source: str) -> k8s.helm.v4.Chart:
        namespace = KubernetesObject(
            f"{name}-{chart.release}-namespace",
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": chart.namespace}},
            pulumi.ResourceOptions(parent=self),
        )
        return k8s.helm.v4.Chart(
            f"{name}-{chart.release}",
            name=chart.release,
            namespace=chart.namespace,
            chart=chart.chart_reference(source),
            version=chart.version,
            values=dict(chart.values),
            opts=pulumi.ResourceOptions(
                parent=self,
                # Charts make no namespace, and their objects name it in text only.
                depends_on=[namespace],
                transforms=[leave_certificates_alone],
            ),
        )

    def _queues(self, name: str, args: QueuesArgs, controllers: list[pulumi.Resource]) -> None:
        hooks = readiness.ask_until(f"{name}-kueue-webhook", readiness.KUEUE_WEBHOOK)

        def add(
            role: str,
            manifest: Mapping[str, Any],
            *after: pulumi.Resource,
            active: bool = False,
            immutable: list[str] | None = None,
        ) -> KubernetesObject:
            return KubernetesObject(
                f"{name}-{role}",
                _awaited(manifest) if active else manifest,
                pulumi.ResourceOptions(
                    parent=self,
                    # Up: definitions are established and webhooks there. Down: Kueue clears the finalizers of its
                    # objects, so every controller outlives them.
                    depends_on=[*controllers, *after],
                    delete_before_replace=True,
                    replace_on_changes=immutable,
                    custom_timeouts=QUEUE_TIMEOUTS,
                    hooks=hooks,
                ),
            )

        topology = add("topology", queue_objects.topology())
        flavor = add("resource-flavor", queue_objects.resource_flavor(), topology)
        check = add("admission-check", queue_objects.admission_check(), active=True)
        namespaces = sorted({queue.namespace for queue in args.local_queues})
        # Kueue holds a flavor, a check and a topology for as long as a queue uses them.
        queue = add(
            "cluster-queue",
            queue_objects.cluster_queue(args.cluster_queue, args.cube_count, namespaces),
            flavor,
            check,
            # Up: nothing is admitted before its hosts are there. Down: a pool with an active slice cannot be deleted,
            # so the queues, and with them every workload, go first.
            *args.hosts,
            active=True,
        )
        for class_name, value in args.priority_classes.items():
            add(f"priority-{class_name}", queue_objects.workload_priority_class(class_name, value))
        # After the queue, so that on the way down a namespace is empty before the queue that counted it goes.
        made = {
            namespace: add(
                f"namespace-{namespace}",
                {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}},
                queue,
            )
            for namespace in namespaces
        }
        for local in args.local_queues:
            add(
                f"local-queue-{local.namespace}-{local.name}",
                queue_objects.local_queue(local.name, local.namespace, args.cluster_queue),
                made[local.namespace],
                active=True,
                # Kueue 0.18.2 refuses to move a queue to another ClusterQueue.
                immutable=["spec.clusterQueue"],
            )

        self.cluster_queue = queue.metadata.apply(lambda metadata: str(metadata["name"]))
        self.namespaces = {
            namespace: resource.metadata.apply(lambda metadata: str(metadata["name"]))
            for namespace, resource in made.items()
        }


def _awaited(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The manifest, made only when Kueue says that the object is active."""
    return {**manifest, "metadata": {**manifest["metadata"], "annotations": {WAIT_FOR: ACTIVE}}}


# Objects of the charts whose fields somebody else fills in, by kind and name.
WRITTEN_BY_CONTROLLERS: dict[tuple[str, str], list[str]] = {
    # JobSet's manager writes its certificates here and rotates them; the chart says that the four keys are empty.
    # (Kueue's and LWS's charts say nothing of the data, and none says anything of `caBundle`: then nothing is
    # compared. The engine would have replaced this Secret after a refresh.)
    ("kubernetes:core/v1:Secret", "jobset-webhook-server-cert"): ["data"],
}


def leave_certificates_alone(args: pulumi.ResourceTransformArgs) -> pulumi.ResourceTransformResult | None:
    """Keep the engine's hands off what controllers write, on exactly the objects of the table."""
    metadata = args.props.get("metadata")
    name = metadata.get("name") if isinstance(metadata, Mapping) else None
    fields = WRITTEN_BY_CONTROLLERS.get((args.type_, str(name)))
    if fields is None:
        return None
    return pulumi.ResourceTransformResult(
        props=args.props,
        opts=pulumi.ResourceOptions.merge(args.opts, pulumi.ResourceOptions(ignore_changes=fields)),
    )
