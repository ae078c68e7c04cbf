"""The controller's command line, spelt as Go's flag package spells it.

Owns which flags, gates and values exist and their defaults. Unknown ones are refused, as the real program does:
a flag that is silently ignored here would be a surprise in the cloud.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from facts import labels

GATES = {
    "UseRetryMechanismForSliceCreation": False,
    "FailOnUntoleratedDegradedSlice": False,
    "TopologyFromNodeSelectorOrAffinity": True,
}

HEALTH_VALUES = {
    "HEALTHY": (labels.PARTITION_HEALTHY,),
    "HEALTHY_AND_DEGRADED": (labels.PARTITION_HEALTHY, labels.PARTITION_DEGRADED),
}

_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


@dataclass(frozen=True, kw_only=True)
class Flags:
    """The values of all flags that change what the stand-in does."""

    metrics_bind_address: str
    health_probe_bind_address: str
    leader_elect: bool
    activation_timeout_seconds: float
    retry_delay_seconds: float
    healthy_values: tuple[str, ...]
    gates: Mapping[str, bool]
    verbosity: int
    kubeconfig: str
    """Empty: KUBECONFIG in the environment, else what a pod has."""


def duration(text: str) -> float:
    """Seconds of a Go duration such as `90s`, `6m` or `1h30m`."""
    if text == "0":
        return 0.0
    parts = re.findall(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h)", text.lstrip("+-"))
    if not parts or "".join(number + unit for number, unit in parts) != text.lstrip("+-"):
        raise ValueError(
            f"must be a Go duration (got {text!r}): the controller reads it so. Write 90s, 6m or 1h30m"
        )
    seconds = sum(float(number) * _UNITS[unit] for number, unit in parts)
    return -seconds if text.startswith("-") else seconds


def boolean(text: str) -> bool:
    """As strconv.ParseBool."""
    if text in {"1", "t", "T", "true", "TRUE", "True"}:
        return True
    if text in {"0", "f", "F", "false", "FALSE", "False"}:
        return False
    raise ValueError(f"must be true or false (got {text!r})")


def feature_gates(text: str) -> dict[str, bool]:
    """Defaults overlaid with `A=true,B=false`."""
    gates = dict(GATES)
    for item in filter(None, (part.strip() for part in text.split(","))):
        name, _, value = item.partition("=")
        if name not in GATES:
            raise ValueError(f"unrecognized feature gate: {name}. Known: {', '.join(GATES)}")
        gates[name] = boolean(value)
    return gates


def health_affinity(text: str) -> tuple[str, ...]:
    """The partition states that a workload without a wish of its own accepts."""
    if text not in HEALTH_VALUES:
        raise ValueError(f"must be {' or '.join(HEALTH_VALUES)} (got {text!r})")
    return HEALTH_VALUES[text]


def verbosity(text: str) -> int:
    """zap's levels: a name, or a number that is logr's verbosity."""
    if text.isdigit():
        return int(text)
    if text not in {"debug", "info", "error", "panic"}:
        raise ValueError(f"must be debug, info, error, panic or a number above 0 (got {text!r})")
    return 1 if text == "debug" else 0


def off(text: str) -> bool:
    """A behaviour of image v0.9 that no published source describes: it may be named, but not switched on."""
    if boolean(text):
        raise ValueError("is not modelled by the stand-in: leave it false, or run the real image")
    return False


_FLAGS: dict[str, tuple[Callable[[str], Any], str]] = {
    "metrics-bind-address": (str, "0"),
    "health-probe-bind-address": (str, ":8081"),
    "leader-elect": (boolean, "false"),
    "activation-timeout": (duration, "3m"),
    "retry-delay-on-slice-failure": (duration, "10s"),
    "default-slice-health-node-affinity": (health_affinity, "HEALTHY_AND_DEGRADED"),
    "feature-gates": (feature_gates, ""),
    "zap-log-level": (verbosity, "info"),
    "kubeconfig": (str, ""),
    # Accepted and without effect here: they tune Go's servers, logs and clients.
    "metrics-secure": (boolean, "true"),
    "enable-http2": (boolean, "false"),
    "zap-devel": (boolean, "false"),
    "zap-encoder": (str, "json"),
    "zap-stacktrace-level": (str, "error"),
    "zap-time-encoding": (str, "epoch"),
    "kube-api-qps": (float, "20"),
    "kube-api-burst": (int, "30"),
    "reuse-slices": (off, "false"),
    "add-preferred-node-affinity": (off, "false"),
}
_SWITCHES = {name for name, (reader, _) in _FLAGS.items() if reader in {boolean, off}}


def parse(arguments: Sequence[str]) -> Flags:
    """Flags from the arguments after the program's name; `ValueError` says which one is wrong and why."""
    values = {name: reader(default) for name, (reader, default) in _FLAGS.items()}
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        found = re.fullmatch(r"--?(?P<name>[A-Za-z0-9][\w-]*)(?:=(?P<value>.*))?", word, re.DOTALL)
        if found is None:
            raise ValueError(f"unexpected argument {word!r}: the controller takes flags only")
        name, value = found["name"], found["value"]
        if name not in _FLAGS:
            raise ValueError(f"flag provided but not defined: -{name}")
        if value is None:
            if name in _SWITCHES:
                value = "true"
            elif rest:
                value = rest.pop(0)
            else:
                raise ValueError(f"flag needs an argument: -{name}")
        try:
            values[name] = _FLAGS[name][0](value)
        except ValueError as error:
            raise ValueError(f"invalid value for flag -{name}: {error}") from None
    return Flags(
        metrics_bind_address=values["metrics-bind-address"],
        health_probe_bind_address=values["health-probe-bind-address"],
        leader_elect=values["leader-elect"],
        activation_timeout_seconds=values["activation-timeout"],
        retry_delay_seconds=values["retry-delay-on-slice-failure"],
        healthy_values=values["default-slice-health-node-affinity"],
        gates=values["feature-gates"],
        verbosity=values["zap-log-level"],
        kubeconfig=values["kubeconfig"],
    )
