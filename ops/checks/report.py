"""The table for a person and the JSON for a program.

Owns how findings are shown: the same ones, in the order in which they were made. Refuses to judge.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ops.checks.outcome import Finding, Status
from ops.checks.removal import Leftover

HEADER = ("step", "check", "result", "seconds", "seen")


@dataclass(frozen=True, kw_only=True)
class Report:
    """One run of verify, over."""

    stack: str
    server: str
    version: str
    namespace: str
    local_queue: str
    run: str
    seconds: float
    exit_code: int
    findings: Sequence[Finding]
    left: Sequence[Leftover]
    interrupted: bool
    abandoned: bool

    @property
    def verdict(self) -> str:
        """One sentence."""
        count = len(self.findings)
        missed = sum(finding.status is Status.MISS for finding in self.findings)
        not_run = sum(finding.status is Status.NOT_RUN for finding in self.findings)
        if self.abandoned:
            return "abandoned: what verify made was left as it is"
        if self.interrupted:
            return "interrupted, and " + ("something is left" if self.left else "nothing is left behind")
        if missed or not_run:
            parts = [f"{missed} missed"] if missed else []
            parts += [f"{not_run} not tried"] if not_run else []
            return f"not as it must be: of {count} checks {', '.join(parts)}"
        not_applicable = sum(finding.status is Status.NOT_APPLICABLE for finding in self.findings)
        return f"as it must be: {count} checks" + (
            f", {not_applicable} not applicable" if not_applicable else ""
        )

    def as_json(self) -> str:
        content: dict[str, Any] = {
            "stack": self.stack,
            "server": self.server,
            "version": self.version,
            "namespace": self.namespace,
            "localQueue": self.local_queue,
            "run": self.run,
            "seconds": round(self.seconds, 3),
            "exitCode": self.exit_code,
            "passed": self.exit_code == 0,
            "verdict": self.verdict,
            "interrupted": self.interrupted,
            "checks": [finding.as_json() for finding in self.findings],
            "left": [{"what": item.what, "removal": item.command} for item in self.left],
        }
        return json.dumps(content, indent=2, ensure_ascii=False)

    def as_table(self) -> str:
        rows = [HEADER, *(_row(finding) for finding in self.findings)]
        widths = [max(len(row[column]) for row in rows) for column in range(len(HEADER) - 1)]
        where = f"namespace {self.namespace}, LocalQueue {self.local_queue}"
        lines = [f"{self.stack}: {self.server}, Kubernetes {self.version}, {where}", ""]
        for row, finding in zip(rows, [None, *self.findings], strict=True):
            lines.append(
                "  ".join([*(c.ljust(w) for c, w in zip(row, widths, strict=False)), row[-1]]).rstrip()
            )
            if finding is not None:
                lines += [f"{' ' * (widths[0] + 2)}└ {reason}" for reason in finding.reasons]
        lines += ["", f"verify {self.stack}: {self.verdict}, {self.seconds:.1f} s"]
        if self.left:
            lines += ["Left behind, and how to remove it:", *(f"  {item.in_words()}" for item in self.left)]
        return "\n".join(lines)


def _row(finding: Finding) -> tuple[str, str, str, str, str]:
    seconds = f"{finding.seconds:.1f}" if finding.status in (Status.OK, Status.MISS) else ""
    return finding.step, finding.check, finding.status.value, seconds, finding.seen
