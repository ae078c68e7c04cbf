"""The engine's protocol, over real gRPC, and the process that serves it."""

import asyncio
import json
import signal
import subprocess
import sys
import time

import grpc
import pytest
from google.protobuf import empty_pb2, struct_pb2
from pulumi.runtime.proto import plugin_pb2, provider_pb2, provider_pb2_grpc, status_pb2

from facts import versions
from simulator.cloud import server, wire
from simulator.cloud.wire import UNKNOWN
from tests.fakes.cloud_region import LOCAL_REGION, NETWORK, in_region, system_pool, tpu_pool, urn


class Engine:
    """What the engine says to an attached provider."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._channel = grpc.aio.insecure_channel(
            f"127.0.0.1:{port}", options=[("grpc.use_local_subchannel_pool", 1)]
        )
        self.stub = provider_pb2_grpc.ResourceProviderStub(self._channel)

    async def attach(self) -> None:
        await self.stub.Attach(plugin_pb2.PluginAttach(address="127.0.0.1:1"))
        inputs = wire.write({"project": "sim-project", "region": "us-central1"})
        await self.stub.Configure(provider_pb2.ConfigureRequest(args=inputs))

    async def create(self, kind, inputs, *, preview=False, secrets=()):
        checked = await self.stub.Check(
            provider_pb2.CheckRequest(
                urn=urn(kind, "it"), news=wire.write(inputs, secrets), randomSeed=b"seed"
            )
        )
        assert not checked.failures, checked.failures
        return await self.stub.Create(
            provider_pb2.CreateRequest(urn=urn(kind, "it"), properties=checked.inputs, preview=preview)
        )

    async def close(self) -> None:
        await self._channel.close()


def served(**options):
    def decorate(test):
        @in_region(**options)
        async def run(region):
            running, port = await server.start(region.provider, None)
            engine = Engine(port)
            await engine.attach()
            try:
                await test(region, engine)
            finally:
                await engine.close()
                await running.stop(grace=None)

        run.__name__ = test.__name__
        return run

    return decorate


@served()
async def test_a_resource_is_made_read_and_removed(region, engine):
    await region.apis()
    made = await engine.create("Network", NETWORK)
    assert made.id == "projects/sim-project/global/networks/qwen-serving-main"
    read = await engine.stub.Read(provider_pb2.ReadRequest(id=made.id, urn=urn("Network", "it")))
    assert wire.read(read.properties).values["mtu"] == 8896
    await engine.stub.Delete(provider_pb2.DeleteRequest(id=made.id, urn=urn("Network", "it")))
    gone = await engine.stub.Read(provider_pb2.ReadRequest(id=made.id, urn=urn("Network", "it")))
    assert gone.id == ""


@served()
async def test_unknown_values_go_both_ways_in_a_preview(region, engine):
    planned = await engine.create("NodePool", {**system_pool(), "cluster": UNKNOWN}, preview=True)
    outputs = wire.read(planned.properties).values
    assert outputs["cluster"] is UNKNOWN
    assert outputs["instanceGroupUrls"] is UNKNOWN
    assert outputs["name"] == "system"


@served()
async def test_secrets_stay_secret(region, engine):
    await region.apis()
    made = await engine.create("Network", {**NETWORK, "description": "hush"}, secrets=[("description",)])
    outputs = wire.read(made.properties)
    assert outputs.values["description"] == "hush"
    assert ("description",) in outputs.secrets


@served()
async def test_the_clusters_client_key_is_secret(region, engine):
    await region.cluster()
    read = await engine.stub.Read(
        provider_pb2.ReadRequest(
            id="projects/sim-project/locations/us-central1/clusters/tpu-serving-cluster",
            urn=urn("Cluster", "it"),
        )
    )
    assert ("masterAuth", "clientKey") in wire.read(read.properties).secrets


@served()
async def test_a_refusal_is_one_sentence_without_a_stack_trace(region, engine):
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await engine.create("Network", NETWORK)
    assert caught.value.code() == grpc.StatusCode.UNKNOWN
    assert caught.value.details().startswith(
        "Error creating Network: googleapi: Error 403: compute.googleapis.com"
    )
    assert "Traceback" not in caught.value.details()


@served()
async def test_a_half_made_pool_reaches_the_engine_with_its_id_and_reason(region, engine):
    await region.cubes()
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await engine.create("NodePool", tpu_pool(1, placementPolicy={"type": "COMPACT"}))
    [packed] = [value for key, value in caught.value.trailing_metadata() if key == "grpc-status-details-bin"]
    detail = provider_pb2.ErrorResourceInitFailed()
    assert status_pb2.Status.FromString(packed).details[0].Unpack(detail)
    assert detail.id.endswith("/nodePools/tpu7-pool-1")
    assert "Use workload policy instead" in detail.reasons[0]
    assert wire.read(detail.properties).values["name"] == "tpu7-pool-1"


@served()
async def test_an_unknown_type_is_refused_by_name(region, engine):
    strange = "urn:pulumi:local::tpu-slices::gcp:sql/database:Database::it"
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await engine.stub.Check(provider_pb2.CheckRequest(urn=strange, news=struct_pb2.Struct()))
    assert "knows no resource type gcp:sql/database:Database" in caught.value.details()


@served()
async def test_a_diff_hears_of_the_old_inputs(region, engine):
    new = {**NETWORK, "mtu": 1460}
    answer = await engine.stub.Diff(
        provider_pb2.DiffRequest(
            id="x",
            urn=urn("Network", "it"),
            old_inputs=wire.write(NETWORK),
            olds=wire.write(new),
            news=wire.write(new),
        )
    )
    assert answer.changes == provider_pb2.DiffResponse.DIFF_SOME
    assert answer.detailedDiff["mtu"].kind == provider_pb2.PropertyDiff.UPDATE


@served()
async def test_a_missing_name_is_made_from_the_logical_one_and_kept(region, engine):
    request = {"urn": urn("Network", "it"), "news": wire.write({"mtu": 8896}), "randomSeed": b"one"}
    first = await engine.stub.Check(provider_pb2.CheckRequest(**request))
    name = wire.read(first.inputs).values["name"]
    assert name.startswith("it-")
    request |= {"olds": first.inputs, "randomSeed": b"two"}
    second = await engine.stub.Check(provider_pb2.CheckRequest(**request))
    assert wire.read(second.inputs).values["name"] == name


@served()
async def test_inputs_of_the_provider_itself_are_checked(region, engine):
    request = provider_pb2.CheckRequest(urn="urn:x", news=wire.write({"project": "p", "regoin": "r"}))
    [failure] = (await engine.stub.CheckConfig(request)).failures
    assert failure.property == "regoin"


@served()
async def test_two_connections_have_each_their_own_defaults(region, engine):
    await region.apis()
    other = Engine(engine.port)
    await other.stub.Configure(provider_pb2.ConfigureRequest(args=wire.write({"project": "nobody"})))
    with pytest.raises(grpc.aio.AioRpcError, match="resource project nobody"):
        await other.create("Network", NETWORK)
    assert (await engine.create("Network", NETWORK)).id.startswith("projects/sim-project/")
    await other.close()


@served()
async def test_we_answer_for_pulumi_gcp_at_the_pinned_version(region, engine):
    info = await engine.stub.GetPluginInfo(empty_pb2.Empty())
    assert info.version == versions.PULUMI_GCP


def cloud_process(folder, *more):
    return subprocess.Popen(
        [
            sys.executable,
            "-m",
            "simulator.cloud",
            f"--region-dir={folder}",
            f"--region-file={LOCAL_REGION}",
            *more,
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def port_of(folder, process):
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if (folder / "cloud.json").exists():
            said = json.loads((folder / "cloud.json").read_text())
            if said["pid"] == process.pid:
                return said["port"]
        assert process.poll() is None, process.stdout.read()
        time.sleep(0.05)
    raise AssertionError("the cloud process does not answer")


def test_the_process_keeps_its_port_and_its_state_and_ends_clean(tmp_path):
    async def make(port):
        engine = Engine(port)
        await engine.attach()
        await engine.create("Service", {"service": "compute.googleapis.com"})
        made = await engine.create("Network", NETWORK)
        await engine.close()
        return made.id

    async def read(port, resource_id):
        engine = Engine(port)
        await engine.attach()
        found = await engine.stub.Read(provider_pb2.ReadRequest(id=resource_id, urn=urn("Network", "it")))
        await engine.close()
        return found.id

    first = cloud_process(tmp_path)
    port = port_of(tmp_path, first)
    resource_id = asyncio.run(make(port))
    first.kill()
    first.wait()
    second = cloud_process(tmp_path)
    try:
        assert port_of(tmp_path, second) == port
        assert asyncio.run(read(port, resource_id)) == resource_id
        second.send_signal(signal.SIGTERM)
        assert second.wait(timeout=20) == 0
    finally:
        second.kill()


def test_a_region_file_that_is_wrong_is_told_in_one_message(tmp_path):
    wrong = tmp_path / "region.yaml"
    wrong.write_text(LOCAL_REGION.read_text().replace("hosts: 16-31", "hosts: 8-23"))
    told = subprocess.run(
        [sys.executable, "-m", "simulator.cloud", f"--region-dir={tmp_path}", f"--region-file={wrong}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 1
    assert "host 8 would be wired into two cubes" in told.stderr
    assert "Traceback" not in told.stderr
