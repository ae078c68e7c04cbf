"""`make up` and `make down`: toolchain, region and the real `pulumi up` of a stack on it, and all of it back.

Up converges from wherever an earlier run was stopped. Down destroys the stack in its order, a protected one too
(nothing that it loses is real), stops the region
and looks that nothing is left; what is left is named, and the exit code says so.
"""

from __future__ import annotations

import dataclasses
import json
import time
from pathlib import Path
from typing import Any

import settings
from preflight import stackfile
from simulator import lifecycle
from simulator.engine import Engine
from simulator.files import read_json, write_atomically, write_json
from simulator.lifecycle import StartOptions
from simulator.region_folder import CHECKOUT, RegionFolder
from simulator.summary import summarize
from simulator.toolchain import ensure


class UpError(Exception):
    """What a person is told when up or down cannot go on."""


def say(text: str) -> None:
    """A line of progress, at once."""
    print(text, flush=True)


def region_file_of(region: RegionFolder, stack: str) -> Path:
    """The region on which `stack` runs here: the hand-written one of its name, else derived from its settings."""
    written = CHECKOUT / "simulator" / "regions" / f"{stack}.yaml"
    if written.exists():
        return written
    # Heavy imports (they take seconds), only where a region is derived.
    from simulator.cloud.derive import region_of
    from simulator.cloud.region_file import dump

    derived = region.root / f"derived-{stack}.yaml"
    said = f"# Derived from Pulumi.{stack}.yaml: what Google would have to offer for it.\n"
    write_atomically(derived, said + dump(region_of(settings_of(stack))))
    return derived


def settings_of(stack: str) -> settings.Settings:
    """The settings of a stack's file. Raises UpError with every problem of it."""
    path = CHECKOUT / f"Pulumi.{stack}.yaml"
    if not path.exists():
        known = ", ".join(sorted(each.name.split(".")[1] for each in CHECKOUT.glob("Pulumi.*.yaml")))
        raise UpError(f"there is no {path.name} in the checkout: name one of these stacks: {known}.")
    try:
        return settings.load(stackfile.config_of(path.read_text(), path.name))
    except settings.SettingsError as error:
        raise UpError(str(error)) from error


def up(region: RegionFolder, stack: str, options: StartOptions | None = None) -> None:
    """Bring `stack` up on this machine. Raises UpError, RegionError, EngineError or ToolchainError."""
    started = time.monotonic()
    wanted = settings_of(stack)  # a wrong file is told in a second, before anything is built or started
    _refuse_another_stack(region, stack)
    say(f"make up: stack {stack}, region in {region.root}")
    toolchain = ensure(say)
    lifecycle.prepare_folder(region, toolchain)
    region_file = region_file_of(region, stack)
    _refuse_what_the_region_lacks(wanted, region_file)
    options = dataclasses.replace(options or StartOptions(), region_file=region_file)
    begun = time.monotonic()
    if lifecycle.start(region, options):
        say(f"region: started in {time.monotonic() - begun:.1f} s ({_readable(region_file)})")
    else:
        say("region: already running")
    write_json(region.root / "stack.json", {"stack": stack})
    engine = Engine(region, stack)
    engine.select()
    for freed in engine.free_dead_locks():
        say(f"engine: removed {freed}")
    if pending := engine.pending_operations():
        say(
            f"engine: an earlier run was stopped while it worked on {len(pending)} resources; looking at each"
        )
        engine.on_stack("refresh", "--yes", "--skip-preview", "--clear-pending-creates")
    say(f"engine: pulumi up of stack {stack}; its resources follow as they are done")
    begun = time.monotonic()
    # The engine refuses to replace or delete what is protected, but does the rest of an update before it comes to a
    # delete: where something is protected, a preview has to pass first.
    preview = [] if engine.protected() else ["--skip-preview"]
    engine.on_stack("up", "--yes", *preview, "--suppress-outputs", "--suppress-progress")
    say(f"engine: done in {time.monotonic() - begun:.1f} s")
    say("")
    say(summarize(region, engine, time.monotonic() - started))


def down(region: RegionFolder) -> None:
    """Destroy the stack that runs here and stop the region. Raises UpError when something is left."""
    stack = stack_of(region)
    if stack is None and lifecycle.running_pid(region) is None:
        say("make down: nothing runs here")
        return
    if stack is not None and Engine(region, stack).exists():
        _destroy(region, stack)
    inventory = _inventory_leftovers(region)
    lifecycle.stop(region)
    say("region: stopped")
    if inventory:
        raise UpError(
            "these resources are still in the region's inventory though no stack has them: "
            f"{', '.join(inventory)}. `python -m simulator reset` forgets them."
        )
    (region.root / "stack.json").unlink(missing_ok=True)
    say("make down: no process, node or resource is left")


def _destroy(region: RegionFolder, stack: str) -> None:
    lifecycle.prepare_folder(region, ensure(say))
    if lifecycle.running_pid(region) is None and Engine(region, stack).resource_count():
        say("region: not running, but the stack has resources: starting it to destroy them in order")
        said = StartOptions(region_file=region_file_of(region, stack))
        lifecycle.start(region, said)
    engine = Engine(region, stack)
    for freed in engine.free_dead_locks():
        say(f"engine: removed {freed}")
    if engine.resource_count() or engine.pending_operations():
        begun = time.monotonic()
        if protected := engine.protected():
            say(
                f"engine: {len(protected)} resources of stack {stack} are protected (`cluster.deletionProtection` is true, "
                "or `safety.mayLoseCapacity` false), so in the cloud `pulumi destroy` refuses; docs/changes.md says how "
                "to go on there. Nothing on the region is real: the protection is lifted here"
            )
            engine.lift_protection()
        say(f"engine: pulumi destroy of stack {stack}")
        engine.on_stack("destroy", "--yes", "--skip-preview", "--suppress-progress")
        say(f"engine: destroyed in {time.monotonic() - begun:.1f} s")
    left = engine.resource_count()
    if left:
        raise UpError(f"{left} resources are left in stack {stack}; the engine's output above says why.")
    engine.run("stack", "rm", stack, "--yes", "--preserve-config", is_quiet=True)


def stack_of(region: RegionFolder) -> str | None:
    """The stack that was brought up on this region."""
    said = read_json(region.root / "stack.json")
    return None if said is None else str(said["stack"])


def _refuse_another_stack(region: RegionFolder, stack: str) -> None:
    present = stack_of(region)
    if present is not None and present != stack:
        raise UpError(
            f"stack {present} is up on this checkout's region, and a region runs one stack: "
            f"`make down` first, or run {stack} from another checkout."
        )


def _refuse_what_the_region_lacks(wanted: settings.Settings, region_file: Path) -> None:
    # Heavy imports (they take seconds), only where a region is used.
    from simulator.cloud import region_file as region_files
    from simulator.cloud.shortfalls import shortfalls

    try:
        found = shortfalls(wanted, region_files.load(region_file))
    except region_files.RegionFileError as error:
        raise UpError(str(error)) from error
    if found:
        raise UpError("\n".join([f"{_readable(region_file)} has not what this stack asks for:", *found]))


def _inventory_leftovers(region: RegionFolder) -> list[str]:
    from simulator.cloud.inventory import left_behind

    return left_behind(region.inventory_json)


def _readable(path: Path) -> str:
    return str(path.relative_to(CHECKOUT)) if path.is_relative_to(CHECKOUT) else str(path)


def print_status(region: RegionFolder) -> None:
    """The region's status as JSON."""
    document: dict[str, Any] = lifecycle.status(region) | {"stack": stack_of(region)}
    print(json.dumps(document, indent=1))
