import http.server
import json
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
import yaml

from ops import stacks
from ops.__main__ import main
from ops.checks import kubernetes_api as api
from ops.checks.kubernetes_api import ApiRefusal, LiveCluster
from ops.checks.outcome import Finding, Status
from ops.checks.removal import Leftover
from ops.checks.report import Report


class Server:
    """An API server that answers what a test tells it to, and remembers what it was asked."""

    def __init__(self) -> None:
        self.answers: dict[tuple[str, str], tuple[int, Any]] = {}
        self.asked: list[tuple[str, str, Any]] = []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def _answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                outer.asked.append((self.command, self.path, json.loads(body) if body else None))
                outer.authorization = self.headers.get("Authorization")
                status, content = outer.answers.get(
                    (self.command, self.path.split("?")[0]), (404, {"message": "no"})
                )
                text = content if isinstance(content, str) else json.dumps(content)
                self.send_response(status)
                self.send_header("Content-Length", str(len(text.encode())))
                self.end_headers()
                self.wfile.write(text.encode())

            do_GET = do_POST = do_DELETE = _answer  # noqa: N815 - names of the base class

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - name of the base class
                pass

        self.authorization: str | None = None
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def kubeconfig(self) -> dict[str, Any]:
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {"name": "c", "cluster": {"server": f"http://127.0.0.1:{self._server.server_port}"}}
            ],
            "users": [{"name": "u", "user": {"token": "let-me-in"}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "x",
        }

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def server() -> Iterator[Server]:
    found = Server()
    yield found
    found.stop()


@pytest.fixture
def cluster(server: Server) -> LiveCluster:
    return LiveCluster.from_kubeconfig(server.kubeconfig)


def test_objects_are_read_with_their_selectors_and_the_kubeconfigs_credential(
    server: Server, cluster: LiveCluster
) -> None:
    server.answers["GET", "/api/v1/nodes"] = (200, {"items": [{"metadata": {"name": "n"}}]})
    assert cluster.list(api.NODES, labels="google.com/tpu=present") == [{"metadata": {"name": "n"}}]
    path, _, query = server.asked[-1][1].partition("?")
    assert path == "/api/v1/nodes"
    assert parse_qs(query) == {"labelSelector": ["google.com/tpu=present"]}
    assert server.authorization == "Bearer let-me-in"


def test_an_absent_object_is_none_and_an_absent_kind_is_a_refusal(cluster: LiveCluster) -> None:
    assert cluster.get(api.JOBSETS, "x", "work") is None
    with pytest.raises(ApiRefusal) as refused:
        cluster.list(api.SLICES)
    assert refused.value.not_found


def test_a_jobset_is_created_in_its_namespace_and_deleted_by_its_uid(
    server: Server, cluster: LiveCluster
) -> None:
    path = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/work/jobsets"
    server.answers["POST", path] = (201, {"metadata": {"name": "x", "uid": "u1"}})
    server.answers["DELETE", f"{path}/x"] = (200, {})
    manifest = {"metadata": {"name": "x", "namespace": "work"}}
    assert cluster.create(api.JOBSETS, manifest)["metadata"]["uid"] == "u1"
    assert server.asked[-1] == ("POST", path, manifest)
    cluster.delete(api.JOBSETS, "x", "work", "u1")
    assert server.asked[-1][2]["preconditions"] == {"uid": "u1"}


def test_a_log_is_text(server: Server, cluster: LiveCluster) -> None:
    server.answers["GET", "/api/v1/namespaces/work/pods/p/log"] = (200, "Global device count: 16\n")
    assert cluster.log("work", "p", "c") == "Global device count: 16\n"


def test_a_refusal_keeps_the_servers_words(server: Server, cluster: LiveCluster) -> None:
    server.answers["GET", "/version"] = (403, {"message": "pods is forbidden"})
    with pytest.raises(ApiRefusal, match="pods is forbidden") as refused:
        cluster.version()
    assert not refused.value.may_pass


def test_a_server_that_is_away_may_come_back(server: Server, cluster: LiveCluster) -> None:
    server.stop()
    with pytest.raises(ApiRefusal, match="no answer") as refused:
        cluster.version()
    assert refused.value.may_pass


def test_a_kubeconfig_without_a_context_is_refused_in_one_sentence() -> None:
    with pytest.raises(ApiRefusal, match="kubeconfig cannot be used"):
        LiveCluster.from_kubeconfig({"apiVersion": "v1", "kind": "Config"})


# --- from a stack to its cluster -------------------------------------------------------------------------------


def test_an_unknown_stack_could_not_begin_and_says_which_there_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["verify", "nowhere"]) == 2
    assert "Pulumi.nowhere.yaml cannot be read: No such file" in capsys.readouterr().err


def stack_file(folder: Path) -> Path:
    pool = {"name": "tpu7-pool", "cubes": 2, "reservation": {"name": "res-a", "block": "block-0"}}
    config = {
        "gcp:project": "example-project",
        "tpu-slices:zone": "us-central1-ai1a",
        "tpu-slices:slicePools": [pool],
    }
    path = folder / "Pulumi.x.yaml"
    path.write_text(yaml.safe_dump({"config": config}))
    return path


def test_a_namespace_without_a_queue_could_not_begin(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["verify", "x", "--config-file", str(stack_file(tmp_path)), "--namespace", "team"]) == 2
    assert "`--namespace` must be one that has a LocalQueue (got team)" in capsys.readouterr().err


def test_a_cluster_that_does_not_answer_could_not_begin(
    tmp_path: Path, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(yaml.safe_dump(server.kubeconfig))
    server.stop()
    arguments = ["--config-file", str(stack_file(tmp_path)), "--kubeconfig", str(kubeconfig)]
    assert main(["verify", "x", *arguments]) == 2
    assert "no answer from" in capsys.readouterr().err


def test_an_empty_cluster_is_a_miss_of_every_step_and_is_told_as_json(
    tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    server.answers["GET", "/version"] = (200, {"gitVersion": "v1.36.3"})
    server.answers["GET", "/api/v1/nodes"] = (200, {"items": []})
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(yaml.safe_dump(server.kubeconfig))
    arguments = ["--config-file", str(stack_file(tmp_path)), "--kubeconfig", str(kubeconfig), "--json"]
    assert main(["verify", "x", *arguments, "--timeout", "0.1"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["exitCode"] == 1
    assert not told["passed"]
    assert {check["step"] for check in told["checks"] if check["status"] == "miss"} == {"5", "6", "7"}
    assert all(check["reasons"] for check in told["checks"])
    assert not [asked for asked in server.asked if asked[0] != "GET"], "nothing was made"


@pytest.mark.parametrize("seconds", ["0", "-1", "inf", "nan", "soon"])
def test_a_wait_without_an_end_is_refused(seconds: str) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["verify", "x", "--timeout", seconds])
    assert stopped.value.code == 2


class Engine:
    """Stands for `pulumi stack output`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.answer: subprocess.CompletedProcess[str] | Exception = FileNotFoundError()
        self.command: list[str] = []

        def run(command: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
            self.command = command
            if isinstance(self.answer, Exception):
                raise self.answer
            return self.answer

        monkeypatch.setattr(stacks.subprocess, "run", run)


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Engine:
    return Engine(monkeypatch)


def test_the_kubeconfig_is_the_stacks_secret_output(engine: Engine) -> None:
    engine.answer = subprocess.CompletedProcess([], 0, yaml.safe_dump({"clusters": [], "kind": "Config"}), "")
    assert stacks.read_kubeconfig("prod") == {"clusters": [], "kind": "Config"}
    assert {"--show-secrets", "--stack", "prod", "kubeconfig"} <= set(engine.command)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (FileNotFoundError(), "pulumi is not on PATH"),
        (subprocess.TimeoutExpired("pulumi", 1), "said nothing about stack prod"),
        (
            subprocess.CompletedProcess([], 255, "", "error: no stack named 'prod' found"),
            "no stack named 'prod' found",
        ),
        (subprocess.CompletedProcess([], 0, "token-abc", ""), "is no kubeconfig"),
    ],
)
def test_each_way_to_have_no_kubeconfig_is_one_sentence(engine: Engine, answer: Any, said: str) -> None:
    engine.answer = answer
    with pytest.raises(stacks.StackError, match=said) as told:
        stacks.read_kubeconfig("prod")
    assert "token-abc" not in str(told.value)


# --- the report ------------------------------------------------------------------------------------------------


def report(*findings: Finding, exit_code: int = 0, **changes: Any) -> Report:
    given: dict[str, Any] = {
        "stack": "local",
        "server": "https://127.0.0.1:1",
        "version": "v1.36.3",
        "namespace": "work",
        "local_queue": "lq",
        "run": "here/1/now",
        "seconds": 12.34,
        "left": [],
        "interrupted": False,
        "abandoned": False,
    }
    return Report(findings=findings, exit_code=exit_code, **{**given, **changes})


OK = Finding(step="5", check="hosts", status=Status.OK, seen="32 of 32", seconds=0.25)
MISS = Finding(
    step="7", check="ClusterQueue cq", status=Status.MISS, seen="not Active", reasons=("a; b", "c")
)


def test_the_table_is_aligned_and_its_last_line_is_the_verdict() -> None:
    lines = report(OK, OK).as_table().splitlines()
    header, row, _ = lines[2:5]
    assert header.index("seen") == row.index("32 of 32")
    assert header.index("result") == row.index("ok")
    assert lines[-1] == "verify local: as it must be: 2 checks, 12.3 s"


def test_each_reason_has_a_line_below_its_row() -> None:
    lines = report(OK, MISS, exit_code=1).as_table().splitlines()
    row = next(index for index, line in enumerate(lines) if "MISS" in line)
    assert [line.strip() for line in lines[row + 1 : row + 3]] == ["└ a; b", "└ c"]
    assert lines[-1] == "verify local: not as it must be: of 2 checks 1 missed, 12.3 s"


def test_what_is_left_is_listed_with_the_command_that_removes_it() -> None:
    left = [Leftover("JobSet work/x", "kubectl delete jobset -n work x")]
    text = report(OK, exit_code=130, left=left, interrupted=True, abandoned=True).as_table()
    assert "abandoned" in text
    assert "  JobSet work/x: kubectl delete jobset -n work x" in text
