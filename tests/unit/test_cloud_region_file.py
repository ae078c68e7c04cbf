"""A region file is read strictly, and says everything that is wrong with it at once."""

import pytest

from simulator.cloud import region_file
from simulator.cloud.region_file import RegionFileError
from tests.fakes.cloud_region import LOCAL_REGION, document


def problems(change) -> list[str]:
    changed = document()
    change(changed)
    with pytest.raises(RegionFileError) as caught:
        region_file.parse(changed)
    return caught.value.problems


def sub_block(changed, index=0):
    return changed["reservations"][0]["blocks"][0]["subBlocks"][index]


def test_the_local_region_is_what_stack_local_needs():
    region = region_file.load(LOCAL_REGION)
    assert [zone.name for zone in region.zones if zone.parent] == ["us-central1-ai1a"]
    assert len(region.reservations[0].blocks[0].sub_blocks) == 2


def test_a_dumped_region_reads_back_the_same():
    import yaml

    region = region_file.load(LOCAL_REGION)
    assert region_file.parse(yaml.safe_load(region_file.dump(region))) == region


def test_overlapping_sub_blocks_are_one_clear_error():
    [problem] = problems(lambda changed: sub_block(changed, 1).update(hosts="8-23"))
    assert "block-0-subblock-0001 hosts 0-15" in problem
    assert "host 8 would be wired into two cubes" in problem


@pytest.mark.parametrize(
    ("change", "path"),
    [
        (lambda changed: changed.update(zonez=[]), "`zonez`"),
        (lambda changed: changed.pop("projects"), "`projects`"),
        (lambda changed: changed["zones"].append({"name": "us-east1-b"}), "`zones[5].name`"),
        (lambda changed: changed["zones"].append({"name": "us-central1-a"}), "`zones`"),
        (lambda changed: changed["zones"][4].pop("parent"), "`zones[4].parent`"),
        (lambda changed: changed["zones"][0].update(parent="us-central1-b"), "`zones[0].parent`"),
        (lambda changed: changed["projects"][0].update(number=7), "`projects[0].number`"),
        (
            lambda changed: changed["gkeChannels"][0].update(default="1.30.0-gke.1"),
            "`gkeChannels[0].default`",
        ),
        (lambda changed: changed["gkeChannels"][0].update(versions=["1.36"]), "`gkeChannels[0].versions[0]`"),
        (lambda changed: changed["reservations"][0].update(project="nobody"), "`reservations[0].project`"),
        (
            lambda changed: changed["reservations"][0].update(zone="us-central1-ai9z"),
            "`reservations[0].zone`",
        ),
        (lambda changed: changed["reservations"][0].update(hostCount=32), "`reservations[0]`"),
        (lambda changed: changed["buckets"][0].update(project="nobody"), "`buckets[0].project`"),
        (lambda changed: changed["knobs"].update(labelDelaySeconds=-1), "`knobs.labelDelaySeconds`"),
        (lambda changed: sub_block(changed).update(hosts="0-7"), "subBlocks[0].hosts`"),
        (lambda changed: sub_block(changed).update(unhealthyHosts=[16]), "subBlocks[0].unhealthyHosts`"),
        (lambda changed: sub_block(changed).update(inUseHostCount=17), "subBlocks[0].inUseHostCount`"),
        (lambda changed: sub_block(changed, 1).update(name="block-0-subblock-0001"), "subBlocks`"),
    ],
)
def test_each_mistake_is_named_by_its_path(change, path):
    found = problems(change)
    assert any(path in problem for problem in found), found


def test_every_mistake_is_told_at_once():
    def change(changed):
        changed["reservations"][0]["project"] = "nobody"
        sub_block(changed, 1)["hosts"] = "8-23"

    assert len(problems(change)) == 2


def test_a_key_given_twice_is_an_error(tmp_path):
    file = tmp_path / "region.yaml"
    file.write_text(LOCAL_REGION.read_text() + "\nregion: us-east1\n")
    with pytest.raises(RegionFileError, match="the key 'region' is given twice"):
        region_file.load(file)


def test_a_missing_file_is_one_sentence(tmp_path):
    with pytest.raises(RegionFileError, match="cannot be read: No such file"):
        region_file.load(tmp_path / "absent.yaml")
