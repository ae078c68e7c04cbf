"""What settings become, where they come from, and that no secret is shown on the way."""

import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pulumi
import pytest
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st
from pulumi.runtime import config as runtime

import settings
from facts import versions
from preflight import cautions, rules, stackfile
from preflight.sealed import Sealed

ROOT = Path(__file__).resolve().parents[2]
NOW = datetime(2026, 12, 1, tzinfo=UTC)
SMALLEST = {"gcp:project": "example-project", "tpu-slices:zone": "us-central1-ai1a"}
POOL = {"name": "tpu7-pool", "cubes": 2, "reservation": {"name": "res-a", "block": "block-0"}}
STATIC = {"name": "multihost-np", "topology": "4x4"}
PATHWAYS = {
    "name": "jetstream-pathways",
    "mode": "single",
    "pools": ["multihost-np"],
    "bucket": "pathways-scratch",
    "checkpoint": "gs://checkpoints/int8",
}
SERVING = {"model": {"bucket": "model-weights", "path": "models--Qwen/snapshots/ea5b4f81"}}
ADDRESS = (
    "https://www.googleapis.com/compute/v1/projects/example-project/zones/us-central1-ai1a/reservations/res-a"
)
CANARY = "hf_CanaryCanaryCanaryCanary"


def load(**sections: Any) -> settings.Settings:
    return settings.load(SMALLEST | {f"tpu-slices:{key}": value for key, value in sections.items()}, now=NOW)


def problems(**sections: Any) -> list[str]:
    with pytest.raises(settings.SettingsError) as refusal:
        load(**sections)
    return [problem.path for problem in refusal.value.problems]


# --- defaults and what follows


def test_project_and_zone_are_enough() -> None:
    stack = load()
    assert stack.region == "us-central1"
    assert stack.is_ai_zone
    assert stack.cluster.version == versions.GKE_DEFAULT
    assert stack.cluster.system_pool.zones == ["us-central1-a", "us-central1-b", "us-central1-c"]
    assert stack.slice_pools == []
    assert stack.pd_serving is None


def test_the_codelabs_stack_has_its_pools_hosts_and_chips() -> None:
    stack = load(slicePools=[POOL])
    [pool] = stack.slice_pools
    assert pool.pool_names == ["tpu7-pool-1", "tpu7-pool-2"]
    assert (pool.host_count, pool.chip_count, stack.chip_count) == (32, 128, 128)
    block = "projects/example-project/reservations/res-a/reservationBlocks/block-0"
    assert stack.slice_pool_reservations == {"tpu7-pool-1": block, "tpu7-pool-2": block}


def test_sub_blocks_belong_to_pools_in_their_order() -> None:
    reservation = {
        "name": "res-a",
        "project": "owner-project",
        "block": "block-0",
        "subBlocks": ["sub-7", "sub-2"],
    }
    stack = load(slicePools=[POOL | {"reservation": reservation}])
    block = "projects/owner-project/reservations/res-a/reservationBlocks/block-0"
    assert stack.slice_pool_reservations == {
        "tpu7-pool-1": f"{block}/reservationSubBlocks/sub-7",
        "tpu7-pool-2": f"{block}/reservationSubBlocks/sub-2",
    }


@pytest.mark.parametrize(
    "form",
    [
        "projects/example-project/reservations/res-a/reservationBlocks/block-0",
        "res-a/reservationBlocks/block-0",
        {"name": "res-a/reservationBlocks/block-0"},
        {"name": "res-a", "block": "block-0"},
        {"name": "projects/example-project/reservations/res-a", "block": "block-0"},
        ADDRESS + "/reservationBlocks/block-0",
    ],
)
def test_every_form_of_a_reservation_becomes_one_exact_value(form: Any) -> None:
    stack = load(slicePools=[POOL | {"reservation": form}])
    exact = "projects/example-project/reservations/res-a/reservationBlocks/block-0"
    assert set(stack.slice_pool_reservations.values()) == {exact}


def test_tensor_parallelism_follows_from_the_shape() -> None:
    serving = load(slicePools=[POOL], pdServing=SERVING).pd_serving
    assert serving is not None
    assert serving.prefill.tensor_parallel == 16
    assert serving.decode.host_count == 8


def test_one_pathways_variant_may_stand_without_a_list() -> None:
    one = load(multihostPools=[STATIC], pathwaysServing=PATHWAYS)
    many = load(multihostPools=[STATIC], pathwaysServing=[PATHWAYS])
    assert one == many
    assert one.multihost_pools[0].host_count == 4


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="frozen"):
        load().zone = "us-east5-b"  # type: ignore[misc]


# --- forms of values


@pytest.mark.parametrize("path", sorted(ROOT.glob("Pulumi.*.yaml")), ids=lambda path: path.name)
def test_a_committed_stack_reads_the_same_from_its_file_and_from_the_engine(path: Path) -> None:
    config = stackfile.config_of(path.read_text(), path.name)
    texts, secret_keys = stackfile.engine_config(config)
    assert settings.load({k: v for k, v in texts.items() if k not in secret_keys}) == settings.load(
        {key: value for key, value in config.items() if key not in secret_keys}
    )


def test_structures_and_json_texts_are_the_same() -> None:
    assert load(slicePools=json.dumps([POOL])) == load(slicePools=[POOL])


def test_a_project_number_may_be_a_number() -> None:
    assert load(projectNumber=123456789012).project_number == "123456789012"


def test_keys_of_the_engine_itself_are_left_alone() -> None:
    assert settings.load(
        SMALLEST | {"pulumi:tags": {"team": "serving"}, "pulumi:disable-default-providers": ["*"]}
    )


def test_a_key_without_namespace_is_the_projects_own() -> None:
    assert settings.load({"gcp:project": "example-project", "zone": "us-east5-b"}).region == "us-east5"


def test_yaml_is_read_as_the_engine_reads_it() -> None:
    text = """
config:
  a: yes
  b: on
  c: 12:30
  d: [2027-01-31, 2027-01-31T01:00:00+02:00, 2027-01-31 01:00:00, 2027-01-31T01:00:00, "2027-01-31", 2027-02-30]
  e: 1.36
  f: [true, 0x10, 1e3, ~, 010.0]
"""
    assert stackfile.config_of(text, "Pulumi.x.yaml") == {
        "a": "yes",
        "b": "on",
        "c": "12:30",
        # Go's spelling of a time, as the engine (3.276) was seen to hand it over.
        "d": [
            "2027-01-31 00:00:00 +0000 UTC",
            "2027-01-31 01:00:00 +0200 +0200",
            "2027-01-31 01:00:00 +0000 UTC",
            "2027-01-31T01:00:00",
            "2027-01-31",
            "2027-02-30",
        ],
        "e": 1.36,
        "f": [True, 16, 1000.0, None, 10.0],
    }


# --- all problems at once


def test_a_fault_in_one_section_hides_none_in_another() -> None:
    said = problems(
        cluster={"version": "1.36", "systemPool": {"nodeCount": 0}},
        slicePools=[{"name": "tpu7-pool", "cubes": 2}],
        network={"podCidr": "10.10.0.0/16"},
        hfToken=CANARY,
    )
    assert said == [
        "tpu-slices:hfToken",
        "tpu-slices:cluster.version",
        "tpu-slices:cluster.systemPool.nodeCount",
        "tpu-slices:slicePools[0].reservation",
        "tpu-slices:network.podCidr",
    ]


def test_a_misspelt_section_is_said_once_and_blamed_for_nothing_else() -> None:
    assert problems(slicePool=[POOL], pdServing=SERVING) == ["tpu-slices:slicePool"]


def test_every_finding_has_a_sentence_of_our_own() -> None:
    for path in (ROOT / "tests/corpus").glob("*.yaml"):
        assert "must be right (" not in path.read_text(), path.stem


class Watched:
    """Settings that note which sections are read."""

    FOLLOWS: dict[str, str] = {  # noqa: RUF012
        "region": "zone",
        "is_ai_zone": "zone",
        "chip_count": "slice_pools",
        "cube_count": "slice_pools",
    }

    def __init__(self, stack: settings.Settings) -> None:
        self.stack = stack
        self.read: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        self.read.add(self.FOLLOWS.get(name, name))
        return getattr(self.stack, name)


@pytest.mark.parametrize(("needed", "rule"), rules.ALL, ids=[rule.__name__ for _, rule in rules.ALL])
def test_a_rule_reads_no_section_that_it_does_not_name(needed: frozenset[str], rule: rules.Rule) -> None:
    serving = load(slicePools=[POOL], multihostPools=[STATIC], pdServing=SERVING, pathwaysServing=PATHWAYS)
    watched = Watched(serving)
    assert list(rule(watched, NOW)) == []  # type: ignore[arg-type]
    aliases = {settings.Settings.model_fields[name].alias or name for name in watched.read}
    # Project and zone have stand-ins of the right form, which do for what only compares them.
    assert aliases - {"project", "zone"} <= needed
    assert aliases


# --- the clock


def test_an_exclusion_is_refused_once_it_is_over() -> None:
    exclusion = {"start": "2026-12-01T00:00:00Z", "end": "2027-01-31T00:00:00Z"}
    config = SMALLEST | {"tpu-slices:cluster": {"maintenanceExclusion": exclusion}}
    assert settings.load(config, now=datetime(2027, 1, 30, tzinfo=UTC))
    with pytest.raises(settings.SettingsError, match="must end in the future"):
        settings.load(config, now=datetime(2027, 1, 31, tzinfo=UTC))


@pytest.mark.parametrize(
    "text",
    [
        "2027-01-31T02:00:00+02:00",
        "2027-01-31T00:00:00Z",
        "2027-01-31 00:00:00 +0000 UTC",
        "2027-01-31 02:00:00 +0200 +0200",
        "2027-01-31",
    ],
)
def test_a_time_is_read_in_every_form_that_the_engine_gives_it(text: str) -> None:
    stack = load(cluster={"maintenanceExclusion": {"start": "2026-12-01", "end": text}})
    assert stack.cluster.maintenance_exclusion is not None
    assert stack.cluster.maintenance_exclusion.end == datetime(2027, 1, 31, tzinfo=UTC)


# --- the one secret


def test_a_closed_token_is_carried_and_never_shown() -> None:
    stack = load(hfToken={"secure": f"v1:{CANARY}"})
    assert isinstance(stack.hf_token, Sealed)
    assert CANARY not in repr(stack) + str(stack) + repr(stack.hf_token)


@pytest.mark.parametrize("token", [f"{CANARY}\n", "", f"export T={CANARY}"])
def test_a_token_with_white_space_is_refused_unseen(token: str) -> None:
    with pytest.raises(settings.SettingsError) as refusal:
        load(hfToken=Sealed(token))
    assert "Canary" not in str(refusal.value)


@given(
    st.sampled_from(
        ["slicePools", "cluster", "network", "queues", "charts", "pathwaysServing", "zone", "hfToken"]
    )
)
def test_a_token_pasted_anywhere_is_never_repeated(section: str) -> None:
    for value in (CANARY, {"name": CANARY}, [CANARY], [{"name": CANARY, CANARY: 1}], json.dumps([CANARY])):
        with pytest.raises(settings.SettingsError) as refusal:
            load(**{section: value})
        assert "Canary" not in str(refusal.value)


@pytest.fixture
def engine() -> Iterator[Any]:
    """Sets what the engine hands over, and takes it away again."""
    held, secret = runtime.CONFIG.get(), runtime._SECRET_KEYS.get()

    def hand_over(config: dict[str, str], secret_keys: tuple[str, ...] = ()) -> None:
        runtime.set_all_config(config, list(secret_keys))

    yield hand_over
    runtime.set_all_config(held, list(secret))


def test_a_running_program_gets_the_token_as_a_secret_output(engine: Any) -> None:
    engine(SMALLEST | {"tpu-slices:hfToken": CANARY}, ("tpu-slices:hfToken",))
    stack = settings.from_pulumi()
    assert isinstance(stack.hf_token, pulumi.Output)
    assert CANARY not in repr(stack)


def test_a_running_program_refuses_a_plain_token_with_the_command_that_fixes_it(engine: Any) -> None:
    engine(SMALLEST | {"tpu-slices:hfToken": CANARY})
    with pytest.raises(pulumi.RunError) as refusal:
        settings.from_pulumi()
    assert "Run: pulumi config set --secret tpu-slices:hfToken" in str(refusal.value)
    assert "Canary" not in str(refusal.value)


def test_a_running_program_raises_one_error_with_everything(engine: Any) -> None:
    engine({"gcp:project": "123456789012", "tpu-slices:slicePools": "[]", "tpu-slices:clusters": "{}"})
    with pytest.raises(pulumi.RunError, match="3 problems"):
        settings.from_pulumi()


def test_reading_settings_imports_no_pulumi() -> None:
    program = "import settings, sys; print([m for m in sys.modules if m.split('.')[0].startswith('pulumi')])"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


# --- cautions

CAUTIONS = {
    "more cubes than a release note allows": (
        {"slicePools": [POOL | {"cubes": 40}]},
        "`slicePools[0]` holds 40 cubes",
    ),
    "no block": ({"slicePools": [POOL | {"reservation": "res-a"}]}, "`slicePools[0]` names no block"),
    "half named sub-blocks": (
        {
            "slicePools": [
                POOL,
                {
                    "name": "named",
                    "cubes": 1,
                    "reservation": {"name": "res-a", "block": "block-0", "subBlocks": ["sub-0"]},
                },
            ]
        },
        "`slicePools[0]` lets GKE pick sub-blocks",
    ),
    "v6e in an AI zone": ({"multihostPools": [STATIC]}, "`multihostPools` asks for v6e hosts in the AI zone"),
    "no hosts at all": ({}, "Neither `slicePools` nor `multihostPools`"),
    "queues for nobody": ({"queues": {"clusterQueue": "cq"}}, "`queues` is set without `slicePools`"),
    "a version never tried": (
        {"slicePools": [POOL], "cluster": {"version": "1.37.1-gke.1000"}},
        "`cluster.version` 1.37.1-gke.1000 is outside the tested set",
    ),
    "an open control plane": (
        {"cluster": {"controlPlaneAccess": "public"}},
        "`cluster.controlPlaneAccess` is public",
    ),
    "public nodes": ({"cluster": {"privateNodes": False}}, "`cluster.privateNodes` is false"),
    "protected, yet upgraded": (
        {"cluster": {"deletionProtection": True}},
        "`cluster.maintenanceExclusion` is not set",
    ),
    "an exclusion beyond what we know": (
        {
            "cluster": {
                "maintenanceExclusion": {
                    "start": "2026-12-01T00:00:00Z",
                    "end": "2027-12-01T00:00:00Z",
                    "scope": "NO_MINOR_UPGRADES",
                }
            }
        },
        "`cluster.maintenanceExclusion` lasts 365 days",
    ),
    "a zone that we do not know": (
        {"cluster": {"systemPool": {"zones": ["us-central1-x"]}}},
        "`cluster.systemPool.zones`: us-central1-x",
    ),
    "an existing network": (
        {"network": {"existing": {"network": "shared", "subnet": "tpu"}}},
        "`network.existing`: the ranges of tpu",
    ),
    "public addresses": (
        {"network": {"subnetCidr": "34.0.0.0/18"}},
        "`network.subnetCidr` 34.0.0.0/18 is public",
    ),
    "small packets": ({"network": {"mtu": 1460}}, "`network.mtu` is 1460"),
    "a shape never shown": (
        {
            "slicePools": [POOL],
            "pdServing": SERVING
            | {
                "prefill": {"replicas": 2, "topology": "2x2x4"},
                "decode": {"replicas": 2, "topology": "2x2x4"},
            },
        },
        "`pdServing` on 2x2x4",
    ),
}


@pytest.mark.parametrize("case", CAUTIONS)
def test_what_is_only_partly_known_is_a_warning(case: str) -> None:
    sections, beginning = CAUTIONS[case]
    assert [text for text in settings.warnings(load(**sections)) if text.startswith(beginning)]


def test_the_codelabs_stack_needs_no_warning() -> None:
    assert cautions.of(load(slicePools=[POOL], pdServing=SERVING)) == []


# --- whatever is typed

scalars = st.none() | st.booleans() | st.integers(-9, 200) | st.floats(allow_nan=False) | st.text(max_size=12)
anything = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
GOOD = SMALLEST | {
    "tpu-slices:slicePools": [POOL],
    "tpu-slices:multihostPools": [STATIC],
    "tpu-slices:pdServing": SERVING,
    "tpu-slices:pathwaysServing": PATHWAYS,
    "tpu-slices:cluster": {"name": "one", "systemPool": {"nodeCount": 1, "zones": ["us-central1-a"]}},
    "tpu-slices:network": {"mtu": 8896, "podCidr": "10.64.0.0/14"},
    "tpu-slices:queues": {"localQueues": [{"name": "lq", "namespace": "llm-d-pd-disaggregation"}]},
}


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    members = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, inner in members:
        yield from places(inner, (*path, key))


def replaced(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    key, *rest = path
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[key] = replaced(copy[key], tuple(rest), new)
    return copy


@effort(max_examples=150, deadline=None)
@given(st.sampled_from([place for place in places(GOOD) if place]), anything)
def test_any_value_anywhere_is_taken_or_refused_in_our_words(place: tuple[Any, ...], value: Any) -> None:
    said: tuple[Any, ...] = ()
    try:
        settings.load(replaced(GOOD, place, value), now=NOW)
    except settings.SettingsError as refusal:
        said = refusal.problems
    assert all(" must " in str(problem) for problem in said)


def test_the_stack_that_is_damaged_above_is_sound() -> None:
    assert settings.load(GOOD, now=NOW)
