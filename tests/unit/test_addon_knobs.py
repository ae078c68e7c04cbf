"""The knobs file is strict, and the pool files say which ids come late."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import get_args

import pytest

from facts import labels, tpu
from simulator.addon import knobs
from simulator.addon.hosts import Host, host_of
from simulator.addon.knobs import HostKnobs, Knobs, KnobsFile, PartitionKnobs, SliceKnobs
from simulator.addon.pool_files import PoolFiles


def test_the_first_entry_that_matches_a_name_counts():
    found = knobs.parse(
        """
        slices:
        - {match: "team-*", outcome: stalled}
        - {match: "*", formationSeconds: 0.5}
        """
    )
    assert found.for_slice("team-a").outcome == "stalled"
    assert found.for_slice("team-a").formation_seconds is None
    assert found.for_slice("other").formation_seconds == 0.5


def test_an_empty_file_changes_nothing():
    assert knobs.parse("") == Knobs()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("slices: [{outcom: failed}]", "slices.0.outcom: Extra inputs are not permitted"),
        ("slices: [{outcome: broken}]", "slices.0.outcome: Input should be"),
        ("slices: [{formationSeconds: -1}]", "slices.0.formationSeconds"),
        ("slices: [{deletionHangs: 1}]", "slices.0.deletionHangs"),
        ("partitions: [{id: a, state: SICK}]", "partitions.0.state"),
        ("partitions: [{state: UNHEALTHY}]", "partitions.0.id: Field required"),
        ("hosts: [{faulty: true}]", "hosts.0.match: Field required"),
        ("faults: []", "faults: Extra inputs are not permitted"),
        ("- 1", "the file"),
        ("{", "not YAML"),
    ],
)
def test_a_wrong_knob_is_refused_with_its_path(text, complaint):
    with pytest.raises(ValueError, match="addon-knobs") as error:
        knobs.parse(text)
    assert complaint in str(error.value)


def test_the_states_that_can_be_forced_are_those_that_labels_can_have():
    known = get_args(PartitionKnobs.model_fields["state"].annotation)
    assert set(known) == set(labels.PARTITION_STATES)


def test_what_is_written_is_read_back(tmp_path):
    wanted = Knobs(
        slices=(SliceKnobs(match="a*", deletion_hangs=True, label_delay_seconds=2),),
        partitions=(PartitionKnobs(id="p", state="DEGRADED"),),
        hosts=(HostKnobs(match="h", faulty=True, slice_label="x"),),
    )
    file = KnobsFile(tmp_path)
    assert file.refresh() is False
    knobs.write(tmp_path, wanted)
    assert file.refresh() is True
    assert file.knobs == wanted
    assert file.refresh() is False
    (tmp_path / knobs.FILE_NAME).unlink()
    assert file.refresh() is True
    assert file.knobs == Knobs()


def test_a_file_that_cannot_be_read_leaves_the_last_good_knobs_in_force_and_says_so(tmp_path, caplog):
    file = KnobsFile(tmp_path)
    knobs.write(tmp_path, Knobs(initialized=False))
    file.refresh()
    (tmp_path / knobs.FILE_NAME).write_text("slices: [{outcom: failed}]")
    assert file.refresh() is False
    assert file.knobs == Knobs(initialized=False)
    assert file.error is not None
    assert "outcom" in caplog.text
    knobs.write(tmp_path, Knobs())
    assert file.refresh() is True
    assert file.error is None


# --- Late ids ----------------------------------------------------------------------------------------------

IDS = {labels.partition_id(level): f"id-{level}" for level in tpu.PARTITION_LEVELS}


def write_pool(tmp_path, delay_seconds: float) -> None:
    folder = tmp_path / "pools"
    folder.mkdir(exist_ok=True)
    host_labels = {**IDS, labels.partition_state("4x4x4"): "HEALTHY", "other": "label"}
    pool = {"labelDelaySeconds": delay_seconds, "hosts": [{"name": "h0", "labels": host_labels}]}
    (folder / "p.json").write_text(json.dumps(pool))
    (folder / "p.status.json").write_text("{}")


def test_late_ids_are_due_at_the_nodes_age_and_are_ids_only(tmp_path):
    write_pool(tmp_path, 30)
    pools = PoolFiles(tmp_path)
    assert pools.refresh() is True
    host = Host(name="h0", created_at=1000)
    assert pools.late_labels(host, 1010) == ({}, 1030)
    assert pools.late_labels(host, 1030) == (IDS, None)
    assert pools.late_labels(replace(host, labels=IDS), 1030) == ({}, None)
    assert pools.late_labels(Host(name="stranger"), 1030) == ({}, None)


def test_a_pool_without_a_delay_has_no_late_ids_and_a_changed_file_is_read_again(tmp_path):
    pools = PoolFiles(tmp_path)
    assert pools.refresh() is False
    write_pool(tmp_path, 0)
    assert pools.refresh() is True
    assert pools.refresh() is False
    assert pools.late_labels(Host(name="h0"), 1e9) == ({}, None)
    write_pool(tmp_path, 5)
    pools.refresh()
    assert pools.late_labels(Host(name="h0"), 1e9) == (IDS, None)
    (tmp_path / "pools" / "p.json").unlink()
    assert pools.refresh() is True
    assert pools.late_labels(Host(name="h0"), 1e9) == ({}, None)


# --- Nodes -------------------------------------------------------------------------------------------------


def node(**more_labels: str) -> dict:
    found = {labels.TPU_ACCELERATOR: "tpu7x", labels.TOPOLOGY_MODE: "PROVISION_ONLY", **more_labels}
    conditions = [{"type": "Ready", "status": "Unknown"}]
    return {"metadata": {"name": "n", "labels": found}, "status": {"conditions": conditions}}


def test_only_tpu7x_hosts_of_provision_only_pools_take_part():
    assert host_of(node()) is not None
    assert host_of(node(**{labels.TOPOLOGY_MODE: "AUTO_CONNECT"})) is None
    assert host_of(node(**{labels.TPU_ACCELERATOR: "tpu-v6e-slice"})) is None
    assert host_of({"metadata": {"name": "n"}}) is None


def test_a_node_that_reports_unknown_is_not_ready_and_one_that_has_not_reported_is_neither():
    assert host_of(node()).is_ready is False
    assert host_of({**node(), "status": {}}).is_ready is None


def test_an_empty_partition_id_is_no_id():
    assert host_of(node(**{labels.partition_id("2x2x2"): ""})).partition_ids == {}
