"""`python -m ops verify STACK`: does the running stack do what the seed's steps 5 to 9 show?

Owns the command line and the way from a stack to a report. Exit codes: 0 everything is proven, 1 something is not
as it must be, 2 it could not begin (wrong usage, no stack, no cluster), 3 nothing missed but something could not
be tried (others hold the hosts), 128 + n when signal n stopped it. Refuses to know whether the cluster is a
simulated one.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ops import stacks
from ops.checks.interruption import Interrupted, Interruption
from ops.checks.kubernetes_api import ApiRefusal, LiveCluster
from ops.checks.plan import STEPS, plan_for, run_name
from ops.checks.report import Report
from ops.checks.verification import Options, Verification
from ops.checks.waiting import Clock, Progress

HELP = "run the seed's checks against a running stack"
COULD_NOT_BEGIN = 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What a person can say."""
    defaults = Options()
    parser.add_argument("stack", metavar="STACK", help="name of the stack, as in Pulumi.<STACK>.yaml")
    parser.add_argument(
        "--kubeconfig", metavar="FILE", help="use this instead of the stack's output; its current context"
    )
    parser.add_argument(
        "--config-file", metavar="FILE", type=Path, help="use this instead of Pulumi.<STACK>.yaml"
    )
    parser.add_argument(
        "--namespace", metavar="NAME", help="use the LocalQueue of this namespace (default: the first)"
    )
    parser.add_argument(
        "--step",
        action="append",
        choices=sorted(STEPS.values()),
        help="try only the workload of this step of the seed: 8 sub-slices, 9 the super-slice (default: both)",
    )
    parser.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=_seconds,
        default=defaults.timeout_seconds,
        help="longest time of each wait (default: %(default)g, the seed's)",
    )
    parser.add_argument(
        "--removal-timeout",
        metavar="SECONDS",
        type=_seconds,
        default=defaults.removal_timeout_seconds,
        help="longest time to wait until everything is gone again (default: %(default)g)",
    )
    parser.add_argument(
        "--preempt", action="store_true", help="go on where Kueue would preempt workloads of lower priority"
    )
    parser.add_argument("--json", action="store_true", help="JSON on stdout instead of a table")


def run(arguments: argparse.Namespace) -> int:
    """Runs it, prints the report on stdout and progress on stderr."""
    clock = Clock()
    started = clock.now()
    with Interruption() as interruption:
        try:
            settings = stacks.load_settings(arguments.stack, arguments.config_file)
            steps = arguments.step or STEPS.values()
            plan = plan_for(settings, namespace=arguments.namespace, run=run_name(), steps=steps)
            kubeconfig = arguments.kubeconfig or stacks.read_kubeconfig(arguments.stack)
            cluster = LiveCluster.from_kubeconfig(kubeconfig)
            version = cluster.version()
        except (stacks.StackError, ApiRefusal, ValueError) as problem:
            print(f"verify {arguments.stack}: {problem}", file=sys.stderr)
            return COULD_NOT_BEGIN
        except Interrupted:
            return interruption.exit_code or COULD_NOT_BEGIN
        verification = Verification(
            cluster=cluster,
            plan=plan,
            options=Options(
                timeout_seconds=arguments.timeout,
                removal_timeout_seconds=arguments.removal_timeout,
                may_preempt=arguments.preempt,
            ),
            clock=clock,
            progress=Progress(clock=clock),
        )
        verification.run(interruption)
        report = Report(
            stack=arguments.stack,
            server=cluster.server,
            version=version,
            namespace=plan.namespace,
            local_queue=plan.local_queue,
            run=plan.run,
            seconds=clock.now() - started,
            exit_code=verification.exit_code(interruption),
            findings=verification.findings,
            left=verification.left,
            interrupted=interruption.received is not None,
            abandoned=verification.abandoned,
        )
    print(report.as_json() if arguments.json else report.as_table())
    return report.exit_code


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError("must be a positive number of seconds: nothing here waits for ever")
    return seconds
