"""What the toolchain holds: each program, the Go module that builds it, and what comes with it.

Owns the table. The versions are the ledger's (`facts/versions.py`); a test compares them with the go.mod files.
A program's key covers all that decides its bytes, so a change of any of it is another folder in the cache.
"""

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path

from facts import versions

MODULES = Path(__file__).parent
RECIPE = 1
"""Count this up when `build.py` makes other files from the same table."""


@dataclass(frozen=True, kw_only=True)
class Copied:
    """A file or folder that is taken as it is out of a Go module, because it belongs to the program."""

    module: str
    """The Go module's path; its version is what go.mod selects."""
    source: str
    """Where it is in the module."""
    target: str
    """Where it goes, in the program's folder."""
    selected_by: str = ""
    """The folder here whose go.mod selects the module's version, where that is not the program's own."""


@dataclass(frozen=True, kw_only=True)
class Program:
    """One program, and how it is built."""

    name: str
    version: str
    module_folder: str
    """The folder here whose go.mod and go.sum fix every dependency."""
    package: str
    expected_seconds: int
    """What it takes on 2 cores after those before it in the table, downloads included (measured 2026-12-01)."""
    sets: tuple[tuple[str, str], ...] = ()
    """Go string variables that carry the version."""
    copies: tuple[Copied, ...] = ()
    embeds: tuple[Copied, ...] = ()
    """Files that go beside main.go before it is compiled."""

    @property
    def files(self) -> tuple[str, ...]:
        """What its folder in the cache must hold to be whole."""
        return (self.name, *(copied.target for copied in self.copies))

    @property
    def linker_flags(self) -> str:
        """Without symbol tables: half the size, and quicker to link."""
        return " ".join(["-s", "-w", *(f"-X {variable}={value}" for variable, value in self.sets)])


def _controller(
    name: str, version: str, package: str, crds: str, module_folder: str, seconds: int
) -> Program:
    """A controller with its own chart and CRDs in its module."""
    module = f"sigs.k8s.io/{name}"
    return Program(
        name=name,
        version=version,
        module_folder=module_folder,
        package=package,
        expected_seconds=seconds,
        sets=((f"{module}/pkg/version.GitVersion", f"v{version}"),),
        copies=(
            Copied(module=module, source=f"charts/{name}", target=f"chart/{name}"),
            Copied(module=module, source=crds, target="crds"),
        ),
    )


def _control_plane(name: str, seconds: int) -> Program:
    release = f"v{versions.KUBERNETES}"
    major, minor, _ = versions.KUBERNETES.split(".")
    return Program(
        name=name,
        version=versions.KUBERNETES,
        module_folder="kubernetes",
        package=f"k8s.io/kubernetes/cmd/{name}",
        expected_seconds=seconds,
        sets=(
            ("k8s.io/client-go/pkg/version.gitVersion", release),
            ("k8s.io/component-base/version.gitVersion", release),
            ("k8s.io/component-base/version.gitMajor", major),
            ("k8s.io/component-base/version.gitMinor", minor),
            ("k8s.io/component-base/version.gitTreeState", "clean"),
        ),
    )


_PULUMI = "github.com/pulumi/pulumi"
_PROVIDER = "github.com/pulumi/pulumi-kubernetes/provider/v4"

PROGRAMS: tuple[Program, ...] = (
    _control_plane("kube-apiserver", 235),
    _control_plane("kube-controller-manager", 55),
    _control_plane("kube-scheduler", 6),
    _controller(
        "kueue",
        versions.KUEUE,
        "sigs.k8s.io/kueue/cmd/kueue",
        "config/components/crd/bases",
        "kubernetes",
        76,
    ),
    _controller(
        "jobset", versions.JOBSET, "sigs.k8s.io/jobset", "config/components/crd/bases", "kubernetes", 7
    ),
    Program(
        name="kwok",
        version=versions.KWOK,
        module_folder="kubernetes",
        package="sigs.k8s.io/kwok/cmd/kwok",
        expected_seconds=14,
        copies=(Copied(module="sigs.k8s.io/kwok", source="kustomize/stage", target="stage"),),
    ),
    Program(
        name="etcd",
        version=versions.ETCD,
        module_folder="kubernetes",
        package="go.etcd.io/etcd/server/v3",
        expected_seconds=8,
    ),
    Program(
        name="pulumi-resource-kubernetes",
        version=versions.PULUMI_KUBERNETES,
        module_folder="kubernetes-provider",
        package=".",
        expected_seconds=379,
        sets=((f"{_PROVIDER}/pkg/version.Version", versions.PULUMI_KUBERNETES),),
        embeds=tuple(
            Copied(module=_PROVIDER, source=f"cmd/pulumi-resource-kubernetes/{name}", target=name)
            for name in ("schema.json", "terraform-mapping.json")
        ),
    ),
    Program(
        name="pulumi",
        version=versions.PULUMI,
        module_folder="pulumi",
        package=f"{_PULUMI}/pkg/v3/cmd/pulumi",
        expected_seconds=230,
        sets=((f"{_PULUMI}/sdk/v3/go/common/version.Version", f"v{versions.PULUMI}"),),
    ),
    Program(
        name="pulumi-language-python",
        version=versions.PULUMI_LANGUAGE_HOST,
        module_folder="language-host",
        package=f"{_PULUMI}/sdk/v3/python/cmd/pulumi-language-python",
        expected_seconds=29,
        sets=((f"{_PULUMI}/sdk/v3/go/common/version.Version", f"v{versions.PULUMI_LANGUAGE_HOST}"),),
        copies=(
            # It looks for its executor in its own folder. The executor is the engine's, which knows newer SDKs.
            Copied(
                module=f"{_PULUMI}/sdk/v3",
                source="python/cmd/pulumi-language-python-exec",
                target="pulumi-language-python-exec",
                selected_by="pulumi",
            ),
        ),
    ),
    _controller("lws", versions.LWS, "sigs.k8s.io/lws/cmd", "config/crd/bases", "lws", 152),
)
"""In the order in which they are built: those of one module together, since they share compiled packages."""

OFFICIAL_PULUMI_REPLACES = frozenset({"pulumi", "pulumi-language-python"})
"""What need not be built where an official Pulumi is installed."""


def folder_name(program: Program, platform: str, modules: Path = MODULES) -> str:
    """The program's folder in the cache: name, version, and the key over all that decides its bytes."""
    folders = {
        program.module_folder,
        *(copied.selected_by for copied in program.copies if copied.selected_by),
    }
    files = [
        path for folder in sorted(folders) for path in sorted((modules / folder).iterdir()) if path.is_file()
    ]
    decides = {
        "recipe": RECIPE,
        "platform": platform,
        "program": {key: value for key, value in asdict(program).items() if key != "expected_seconds"},
        "files": [(path.name, hashlib.sha256(path.read_bytes()).hexdigest()) for path in files],
    }
    key = hashlib.sha256(json.dumps(decides, sort_keys=True).encode()).hexdigest()[:12]
    return f"{program.name}-{program.version}-{key}"
