"""The engine's provider protocol over gRPC, for a provider that is attached from outside.

The SDK's own servicer (`pulumi.provider.experimental`, 3.272) is not used: it has no `Attach`, which the engine calls
in this mode, leaves `old_inputs` out of `Diff`, cannot send an unknown value, says nothing of a resource that was
half made, and puts a stack trace into every error. Here a refusal reaches the person as one sentence.
Methods that no attached gcp provider is asked for (construct, parameterize, schema) stay unimplemented.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable
from functools import wraps
from typing import Any

import grpc
from google.protobuf import empty_pb2
from pulumi.runtime.proto import plugin_pb2, provider_pb2, provider_pb2_grpc, status_pb2

from facts import versions
from simulator.cloud import wire
from simulator.cloud.diffing import Diff
from simulator.cloud.errors import Refusal
from simulator.cloud.lifecycle import HalfMade
from simulator.cloud.provider import Answer, Provider, Session
from simulator.cloud.sdk_schema import Problem

log = logging.getLogger(__name__)

_KINDS = {
    ("add", False): provider_pb2.PropertyDiff.ADD,
    ("add", True): provider_pb2.PropertyDiff.ADD_REPLACE,
    ("delete", False): provider_pb2.PropertyDiff.DELETE,
    ("delete", True): provider_pb2.PropertyDiff.DELETE_REPLACE,
    ("update", False): provider_pb2.PropertyDiff.UPDATE,
    ("update", True): provider_pb2.PropertyDiff.UPDATE_REPLACE,
}

Method = Callable[[Any, Any, Any], Awaitable[Any]]


def _answered(method: Method) -> Method:
    """Turn a refusal into the error that a person reads, and anything else into a logged fault of ours."""

    @wraps(method)
    async def answer(self: Servicer, request: Any, context: grpc.aio.ServicerContext) -> Any:
        try:
            return await method(self, request, context)
        except HalfMade as half_made:
            await self.abort_half_made(half_made, context)
        except (Refusal, ValueError) as refusal:
            log.info("%s refused: %s", method.__name__, refusal)
            await context.abort(grpc.StatusCode.UNKNOWN, str(refusal))
        except Exception as error:
            if isinstance(error, grpc.aio.AbortError):
                raise
            log.exception("%s failed", method.__name__)
            await context.abort(
                grpc.StatusCode.INTERNAL,
                f"the simulated region has a fault of its own ({error!r}): see its cloud log",
            )

    return answer


class Servicer(provider_pb2_grpc.ResourceProviderServicer):
    """Serves one region's provider to any number of engines."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        self._sessions: dict[str, Session] = {}
        self._last = Session()

    def _session(self, context: grpc.aio.ServicerContext) -> Session:
        """The connection's session; every provider resource of an engine has a connection of its own."""
        return self._sessions.get(context.peer(), self._last)

    # --- The connection -----------------------------------------------------------------------------------------

    async def Handshake(self, request: Any, context: grpc.aio.ServicerContext) -> Any:  # noqa: N802
        """What we understand of the protocol."""
        return provider_pb2.ProviderHandshakeResponse(accept_secrets=True)

    async def Attach(self, request: Any, context: grpc.aio.ServicerContext) -> Any:  # noqa: N802
        """The engine has found us by PULUMI_DEBUG_PROVIDERS."""
        self._sessions[context.peer()] = Session()
        return empty_pb2.Empty()

    async def GetPluginInfo(self, request: Any, context: grpc.aio.ServicerContext) -> Any:  # noqa: N802
        """We answer for pulumi-gcp at the pinned version."""
        return plugin_pb2.PluginInfo(version=versions.PULUMI_GCP)

    async def Cancel(self, request: Any, context: grpc.aio.ServicerContext) -> Any:  # noqa: N802
        """The person pressed Ctrl-C, or the engine ends: nobody waits any more."""
        self._session(context).stop.set()
        return empty_pb2.Empty()

    async def GetMapping(self, request: Any, context: grpc.aio.ServicerContext) -> Any:  # noqa: N802
        """There is nothing to convert from."""
        return provider_pb2.GetMappingResponse()

    @_answered
    async def CheckConfig(self, request: Any, context: grpc.aio.ServicerContext) -> Any:  # noqa: N802
        """Inputs of the provider itself."""
        problems = self._provider.check_config(wire.read(request.news).values)
        return provider_pb2.CheckResponse(inputs=request.news, failures=_failures(problems))

    @_answered
    async def DiffConfig(self, request: Any, context: grpc.aio.ServicerContext) -> Any:  # noqa: N802
        """A provider with other inputs reaches the same resources: nothing is replaced."""
        old, new = wire.read(request.old_inputs).values, wire.read(request.news).values
        changed = sorted(name for name in {*old, *new} if old.get(name) != new.get(name))
        changes = provider_pb2.DiffResponse.DIFF_SOME if changed else provider_pb2.DiffResponse.DIFF_NONE
        return provider_pb2.DiffResponse(changes=changes, diffs=changed)

    @_answered
    async def Configure(self, request: Any, context: grpc.aio.ServicerContext) -> Any:  # noqa: N802
        """Project, region and zone that fill in what resources leave out."""
        session = Session()
        self._provider.configure(session, wire.read(request.args).values)
        self._sessions[context.peer()] = self._last = session
        return provider_pb2.ConfigureResponse(acceptSecrets=True, supportsPreview=True)

    # --- Resources ----------------------------------------------------------------------------------------------

    @_answered
    async def Check(self, request: Any, context: grpc.aio.ServicerContext) -> Any:  # noqa: N802
        """Judge the inputs of a resource."""
        given = wire.read(request.news)
        inputs, problems = self._provider.check(
            self._session(context),
            request.urn,
            wire.read(request.olds).values,
            given.values,
            request.randomSeed,
        )
        return provider_pb2.CheckResponse(
            inputs=wire.write(inputs, given.secrets), failures=_failures(problems)
        )

    @_answered
    async def Diff(self, request: Any, context: grpc.aio.ServicerContext) -> Any:  # noqa: N802
        """Judge a change of inputs."""
        diff = self._provider.diff(
            request.urn,
            wire.read(request.old_inputs).values,
            wire.read(request.olds).values,
            wire.read(request.news).values,
            list(request.ignoreChanges),
        )
        return _diff_response(diff)

    @_answered
    async def Create(self, request: Any, context: grpc.aio.ServicerContext) -> Any:  # noqa: N802
        """Make a resource."""
        given = wire.read(request.properties)
        answer = await self._provider.create(
            self._session(context), request.urn, given, is_preview=request.preview
        )
        return provider_pb2.CreateResponse(
            id=answer.id, properties=wire.write(answer.outputs, answer.secrets)
        )

    @_answered
    async def Update(self, request: Any, context: grpc.aio.ServicerContext) -> Any:  # noqa: N802
        """Change a resource."""
        answer = await self._provider.update(
            self._session(context),
            request.urn,
            request.id,
            wire.read(request.olds).values,
            wire.read(request.news),
            is_preview=request.preview,
        )
        return provider_pb2.UpdateResponse(properties=wire.write(answer.outputs, answer.secrets))

    @_answered
    async def Delete(self, request: Any, context: grpc.aio.ServicerContext) -> Any:  # noqa: N802
        """Remove a resource."""
        await self._provider.delete(self._session(context), request.urn, request.id)
        return empty_pb2.Empty()

    @_answered
    async def Read(self, request: Any, context: grpc.aio.ServicerContext) -> Any:  # noqa: N802
        """Refresh or import a resource."""
        known = wire.read(request.inputs)
        answer = await self._provider.read(
            self._session(context), request.urn, request.id, known.values, known.secrets
        )
        if answer is None:
            return provider_pb2.ReadResponse()
        return provider_pb2.ReadResponse(
            id=answer.id,
            properties=wire.write(answer.outputs, answer.secrets),
            inputs=wire.write(answer.inputs, known.secrets),
        )

    @_answered
    async def Invoke(self, request: Any, context: grpc.aio.ServicerContext) -> Any:  # noqa: N802
        """Answer a function."""
        given = wire.read(request.args)
        result = self._provider.invoke(self._session(context), request.tok, given.values)
        return provider_pb2.InvokeResponse(**{"return": wire.write(result)})

    async def abort_half_made(self, half_made: HalfMade, context: grpc.aio.ServicerContext) -> None:
        """Fail, and have the engine keep the resource."""
        answer: Answer = self._provider.answer_half_made(half_made.record, frozenset())
        detail = provider_pb2.ErrorResourceInitFailed(
            id=answer.id,
            properties=wire.write(answer.outputs, answer.secrets),
            reasons=[half_made.reason],
            inputs=wire.write(answer.inputs),
        )
        code = grpc.StatusCode.UNKNOWN
        status = status_pb2.Status(code=code.value[0], message=half_made.reason)
        status.details.add().Pack(detail)
        trailer = (("grpc-status-details-bin", status.SerializeToString()),)
        await context.abort(code, half_made.reason, trailing_metadata=trailer)


def _failures(problems: Iterable[Problem]) -> list[Any]:
    return [provider_pb2.CheckFailure(property=problem.path, reason=problem.reason) for problem in problems]


def _diff_response(diff: Diff) -> Any:
    changes = provider_pb2.DiffResponse.DIFF_SOME if diff.differences else provider_pb2.DiffResponse.DIFF_NONE
    return provider_pb2.DiffResponse(
        changes=changes,
        replaces=diff.replaces,
        diffs=diff.changed,
        deleteBeforeReplace=diff.deletes_before_replace,
        hasDetailedDiff=True,
        detailedDiff={
            item.path: provider_pb2.PropertyDiff(kind=_KINDS[item.change, item.replaces], inputDiff=True)
            for item in diff.differences
        },
    )
