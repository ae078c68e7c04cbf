"""What runs on the cluster: where it comes from, in which order it comes, and in which it goes."""

import asyncio

import pulumi
import pytest
import yaml

from components import controller_charts, slice_controller
from components.orchestration import WRITTEN_BY_CONTROLLERS, leave_certificates_alone
from components.slice_controller import SliceControllerArgs
from facts import versions
from tests.unit import plans

NAMESPACE = "orchestration-namespace-llm-d-pd-disaggregation"
LOCAL_QUEUE = "orchestration-local-queue-llm-d-pd-disaggregation-lq"
QUEUE = "orchestration-cluster-queue"
CHECK = "orchestration-admission-check"
CONTROLLER = "orchestration-slice-controller-deployment"
CHARTS = ("orchestration-kueue", "orchestration-jobset", "orchestration-lws")
POOLS = ("slice-pools-tpu7-pool-1", "slice-pools-tpu7-pool-2")


@pytest.mark.parametrize(
    ("later", "earlier"),
    [
        (LOCAL_QUEUE, NAMESPACE),
        # Down: the namespace is empty, its workloads' finalizers cleared, before anything that clears them goes.
        (NAMESPACE, QUEUE),
        *((NAMESPACE, chart) for chart in CHARTS),
        (NAMESPACE, CONTROLLER),
        # Kueue holds what a queue refers to.
        (QUEUE, CHECK),
        (QUEUE, "orchestration-resource-flavor"),
        ("orchestration-resource-flavor", "orchestration-topology"),
        # GKE refuses to delete a pool with an active slice.
        *((QUEUE, pool) for pool in POOLS),
        # It watches the kinds of all three from its start.
        *((CONTROLLER, chart) for chart in CHARTS),
        (CONTROLLER, "orchestration-slice-controller-cluster-role-binding"),
        (CONTROLLER, "orchestration-slice-controller-mutating-webhook-configuration"),
        # No controller starts before its nodes, and none is left when they go.
        *((chart, "cluster-system-pool") for chart in CHARTS),
        (CHARTS[0], "orchestration-kueue-namespace"),
        ("orchestration-priority-low-priority-1000", "orchestration-kueue"),
        ("cluster-system-pool", "network-nat"),
        ("cluster-cluster", "network-proxy-subnet"),
        ("cluster-cluster", "network-firewall"),
        (POOLS[0], "slice-pools-policy"),
        (POOLS[0], "cluster-cluster"),
        ("network-network", "services-compute"),
        ("slice-pools-policy", "services-ai-zones"),
    ],
)
def test_one_comes_after_the_other_and_goes_before_it(later, earlier):
    found = plans.planned("local")
    assert plans.dependents_first(found, later, earlier)
    assert not plans.dependents_first(found, earlier, later)


@pytest.mark.parametrize(
    ("one", "other"),
    [CHARTS[:2], CHARTS[1:], (CHARTS[0], POOLS[0]), (POOLS[0], POOLS[1]), (CONTROLLER, POOLS[0])],
)
def test_what_need_not_wait_for_each_other_does_not(one, other):
    found = plans.planned("local")
    assert not plans.dependents_first(found, one, other)
    assert not plans.dependents_first(found, other, one)


def test_queue_objects_ask_until_kueues_webhooks_answer():
    found = plans.planned("local")
    assert found.named("orchestration-resource-flavor").options["onError"] == ["orchestration-kueue-webhook"]


@pytest.mark.parametrize("name", [CHECK, QUEUE, LOCAL_QUEUE])
def test_a_queue_and_its_check_count_as_made_only_when_they_are_active(name):
    annotations = plans.planned("local").named(name).inputs["metadata"]["annotations"]
    assert annotations == {"pulumi.com/waitFor": "condition=Active"}


def test_a_stack_with_static_slices_alone_gets_lws_alone():
    found = plans.planned("pathways")
    assert [chart.inputs["name"] for chart in found.of_type(plans.CHART)] == ["lws"]
    assert not [name for name in found.registrations if "kueue" in name]


@pytest.mark.parametrize(
    ("source", "reference"), [("oci", versions.KUEUE_CHART), (".region/charts", ".region/charts/kueue")]
)
def test_a_chart_comes_from_its_registry_or_from_a_folder_with_the_same_values(source, reference):
    found = plans.changed("local", charts={"source": source}).named("orchestration-kueue").inputs
    assert found["chart"] == reference
    assert found["values"] == plans.planned("local").named("orchestration-kueue").inputs["values"]


@pytest.mark.parametrize("stack", plans.STACKS)
def test_no_image_of_a_chart_floats(stack):
    for chart in plans.planned(stack).of_type(plans.CHART):
        text = yaml.safe_dump(chart.inputs["values"])
        assert "pullPolicy: IfNotPresent" in text
        assert f"tag: v{chart.inputs['version']}" in text


def test_kueue_manages_the_named_namespaces_and_no_other():
    values = plans.planned("prod").named("orchestration-kueue").inputs["values"]
    configuration = yaml.safe_load(values["managerConfig"]["controllerManagerConfigYaml"])
    (expression,) = configuration["managedJobsNamespaceSelector"]["matchExpressions"]
    assert expression["values"] == ["llm-d-pd-disaggregation", "training"]
    assert "deployment" not in configuration["integrations"]["frameworks"]


def test_each_namespace_with_a_queue_is_made_once():
    queues = {"localQueues": [{"name": "a", "namespace": "work"}, {"name": "b", "namespace": "work"}]}
    found = plans.changed("local", queues=queues)
    assert len([name for name in found.registrations if name.endswith("::orchestration-namespace-work")]) == 1
    assert found.named("orchestration-local-queue-work-b").inputs["spec"] == {"clusterQueue": "cq"}


def test_a_queue_that_moves_to_another_cluster_queue_is_made_anew():
    # LocalQueue's CRD: spec.clusterQueue "field is immutable".
    assert plans.planned("local").named(LOCAL_QUEUE).options["replaceOnChanges"] == ["spec.clusterQueue"]


# --- the slice controller's manifest -----------------------------------------------------------------------
ARGS = SliceControllerArgs(activation_timeout_seconds=90, retry_delay_seconds=7, health_affinity="HEALTHY")


def test_every_file_of_the_manifest_is_deployed():
    folder = {path.stem for path in slice_controller.MANIFESTS.iterdir()}
    assert folder == set(slice_controller.FILES)


def test_settings_reach_the_controllers_flags_and_nothing_else_of_its_arguments_changes():
    before = slice_controller.load("deployment")
    after = slice_controller.configured(slice_controller.load("deployment"), ARGS)
    (old,), (new,) = (d["spec"]["template"]["spec"]["containers"] for d in (before, after))
    changes = dict(pair for pair in zip(old["args"], new["args"], strict=True) if pair[0] != pair[1])
    assert sorted(changes.values()) == [
        "--activation-timeout=90s",
        "--default-slice-health-node-affinity=HEALTHY",
        "--retry-delay-on-slice-failure=7s",
    ]
    assert new["image"] == f"{versions.SLICE_CONTROLLER_IMAGE}:{versions.SLICE_CONTROLLER}"
    assert {key: value for key, value in new.items() if key not in ("args", "image")} == {
        key: value for key, value in old.items() if key not in ("args", "image")
    }


@pytest.mark.parametrize("flag", ["--activation-timeout", "--retry-delay-on-slice-failure"])
def test_a_flag_that_has_moved_is_refused(flag):
    deployment = slice_controller.load("deployment")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    container["args"] = [argument for argument in container["args"] if not argument.startswith(flag)]
    with pytest.raises(ValueError, match=rf"must hold {flag} once \(got 0 times\)"):
        slice_controller.configured(deployment, ARGS)


def test_a_container_that_has_moved_is_refused():
    deployment = slice_controller.load("deployment")
    deployment["spec"]["template"]["spec"]["containers"][0]["name"] = "other"
    with pytest.raises(ValueError, match="must hold one named manager"):
        slice_controller.configured(deployment, ARGS)


def test_the_manifest_says_nothing_of_what_the_controller_writes():
    assert not {"data", "stringData"} & set(slice_controller.load("secret"))
    assert "caBundle" not in yaml.safe_dump(slice_controller.load("mutating-webhook-configuration"))


# --- certificates ------------------------------------------------------------------------------------------
def transformed(type_token, name):
    async def run():
        args = pulumi.ResourceTransformArgs(
            custom=True,
            type_=type_token,
            name="x",
            props={"metadata": {"name": name}},
            opts=pulumi.ResourceOptions(),
        )
        return leave_certificates_alone(args)

    return asyncio.run(run())


def test_what_a_controller_writes_is_left_alone_on_exactly_the_named_objects():
    ((kind, name),) = WRITTEN_BY_CONTROLLERS
    assert transformed(kind, name).opts.ignore_changes == ["data"]
    assert transformed(kind, "another") is None
    assert transformed("kubernetes:core/v1:ConfigMap", name) is None


def test_every_chart_gets_the_transform():
    assert {chart.options["transforms"] for chart in plans.planned("local").of_type(plans.CHART)} == {1}


def test_the_named_secret_is_the_one_that_jobsets_release_makes():
    ((_, name),) = WRITTEN_BY_CONTROLLERS
    assert name == f"{controller_charts.jobset().release}-webhook-server-cert"
