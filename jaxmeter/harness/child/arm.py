"""The fork server of one environment in lock-step: processes that run a case, in turns with those of another one.

It runs under jax 0.4.31 and newer, and needs jax, numpy, msgspec and what the suites need. It says which versions it
has; then it listens at the path of a socket, where a measuring process connects to one process that answers it.
"""

from __future__ import annotations

import gc
import io
import os
import platform as host_platform
import select
import signal
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

import jax
import msgspec

from jaxmeter.harness.child.checkout import list_strangers
from jaxmeter.harness.child.forks import Forks
from jaxmeter.harness.child.inputs import find_inputs
from jaxmeter.harness.child.worker import find_missing_device, find_workload, set_up_jax
from jaxmeter.harness.declare.catalogue import SuiteError, find_suites
from jaxmeter.harness.declare.declaration import DeclarationError
from jaxmeter.harness.declare.own_packages import list_own_packages
from jaxmeter.harness.machine.environment import describe_error, list_packages
from jaxmeter.harness.machine.interference import Interference, ReadInterference, keep_on_cores
from jaxmeter.harness.plan.messages import Begin, DescribeCode, Done, Ready, Reply, Seen, SeenCase, Turn, TurnStep
from jaxmeter.harness.probes.context import Context
from jaxmeter.harness.probes.sampler import Sampler
from jaxmeter.harness.programs.arguments import hash_arguments, unpack_numbers
from jaxmeter.harness.programs.jax_events import use_cache


def serve(descriptor: str, path: str, *suites: str) -> None:
    """Serve until the parent closes its end.

    Args:
      path: Of the socket where measuring processes connect, one at a time.
      suites: In place of those of the run; empty where they are the same.
    """
    forks = Forks(descriptor, suites)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        forks.say(Ready(python=host_platform.python_version(), packages=list_packages()))
        while forks.control not in select.select([listener, forks.control], [], [])[0]:
            connection, _ = listener.accept()
            with connection:
                pid = forks.fork(partial(_answer, connection, listener, suites))
                _wait_for_any(pid, connection, forks.control)
            os.kill(pid, signal.SIGKILL)
            forks.wait(pid)


def _wait_for_any(pid: int, *connections: socket.socket) -> None:
    """Wait until a process has ended, or the other end of a connection is closed.

    Another process waits, not a thread of the measured process: with a second thread, eager code takes 3 % longer.
    """
    ended = os.pidfd_open(pid)
    poll = select.poll()
    poll.register(ended, select.POLLIN)
    for connection in connections:
        poll.register(connection, select.POLLRDHUP)
    poll.poll()
    os.close(ended)


def _answer(connection: socket.socket, listener: socket.socket, suites: Sequence[str]) -> None:
    """Serve one process: one that measures, or the parent, which looks at the code first."""
    listener.close()
    with connection.makefile("rwb") as stream:
        asked = msgspec.json.decode(stream.readline(), type=Begin | DescribeCode)
        if isinstance(asked, DescribeCode):
            _say(stream, _describe_code(asked, suites))
        else:
            _serve(stream, asked, suites or asked.settings.suites)


def _describe_code(message: DescribeCode, suites: Sequence[str]) -> Reply:
    """Return which code of the cases there is here."""
    seen: dict[str, SeenCase] = {}
    try:
        for case in message.cases:
            _, now = find_workload(case, suites, message.platform)
            sources = {variant.name: variant.source for variant in now.variants}
            seen[case.id] = SeenCase(definition=now.definition, sources=sources)
    except Exception as error:  # noqa: BLE001  a suite's code may raise anything
        return Reply(refusal=_describe(error))
    own_packages = list_own_packages(find_suites(suites))
    return Reply(seen=Seen(cases=seen, strangers=list_strangers(), own_packages=own_packages))


def _serve(stream: io.BufferedRWPair, begin: Begin, suites: Sequence[str]) -> None:
    """Prepares what is asked for, and takes turns until the measuring process is gone."""
    try:
        context = _begin(begin, suites)
        inputs = hash_arguments(context.arguments)
    except Exception as error:  # noqa: BLE001  a suite's code may raise anything
        _say(stream, Reply(refusal=_describe(error)))
        return
    samplers: dict[str, Sampler] = {}
    gc.disable()  # as in the measuring process
    with closing(Interference()) as interference:
        _say(stream, Reply(done=Done(cpu_s=time.process_time(), inputs=inputs)))
        for line in stream:
            turn = msgspec.json.decode(line, type=Turn)
            try:
                if turn.step is TurnStep.INPUTS:
                    reply = Reply(done=_take_inputs(context, stream.read(turn.size)))
                else:
                    if turn.step is TurnStep.PREPARE:
                        samplers[turn.variant] = _prepare(turn.variant, context, begin)
                    reply = Reply(done=_take(turn, samplers[turn.variant], interference))
            except Exception as error:  # noqa: BLE001  as above
                reply = Reply(refusal=_describe(error))
            _say(stream, reply)


def _begin(begin: Begin, suites: Sequence[str]) -> Context:
    """The case, as this environment has it.

    Raises:
      SuiteError: It has no such case, or another.
      Whatever the suites raise.
    """
    if begin.cores is not None:
        keep_on_cores(begin.cores, begin.core)
    use_cache(begin.cache)
    set_up_jax(begin.case, begin.platform)
    workload, now = find_workload(begin.case, suites, begin.platform)
    if (problem := find_missing_device(begin.platform)) is not None:
        raise SuiteError(problem)
    if now.definition != begin.case.definition:
        raise SuiteError(f"inputs, reference or cost of {begin.case.name} are others there")
    return Context(
        workload=workload,
        params=begin.case.params,
        platform=begin.platform,
        arguments=find_inputs(workload, begin.case.params, Path(begin.inputs)).arguments,
        clock=time.perf_counter,
        folder=None,
        case=now,
        settings=begin.settings,
    )


def _take_inputs(context: Context, numbers: bytes) -> Done:
    """Numbers of the measuring process in place of those that were made here.

    Raises:
      SuiteError: They are more bytes, or fewer.
    """
    try:
        context.arguments = unpack_numbers(numbers, context.arguments)
    except ValueError as error:
        raise SuiteError(str(error)) from error
    return Done(cpu_s=time.process_time(), inputs=hash_arguments(context.arguments))


def _prepare(variant: str, context: Context, begin: Begin) -> Sampler:
    """A variant that was called once.

    Raises:
      SuiteError: Its code is not that of the earlier run.
      Whatever it raises.
    """
    own = {} if context.case is None else {item.name: item.source for item in context.case.variants}
    if own.get(variant) != begin.sources.get(variant):
        raise SuiteError("its code there is not what the run has measured; give that run's own checkout")
    prepared = context.prepare(variant)
    prepared.reset()
    prepared.wait(prepared.call(*prepared.args))
    for name, file in list_strangers().items():  # also what a call imports
        raise SuiteError(f"{name} is loaded from {file}, not from the checkout of the earlier run")
    gc.collect()
    return Sampler(prepared, time.perf_counter, begin.settings.sample_s)


def _take(turn: Turn, sampler: Sampler, interference: ReadInterference) -> Done:
    """Does what is asked."""
    steps: Mapping[TurnStep, Callable[[], object]] = {
        TurnStep.CALIBRATE: sampler.calibrate,
        TurnStep.WARM_UP: sampler.warm_up,
        TurnStep.BLOCK: lambda: sampler.take_block(turn.pass_number, turn.block_s, interference),
        TurnStep.ROW: lambda: sampler.take_row(turn.count, turn.block_s, queued=turn.queued),
        TurnStep.ISOLATED: lambda: sampler.take_isolated(turn.count, turn.block_s),
        TurnStep.RETURN: sampler.take_returns,
    }
    if turn.step in steps:
        steps[turn.step]()
    return Done(
        cpu_s=time.process_time(),
        calls=sampler.calls,
        call_s=sampler.call_s,
        returns_early=sampler.returns_early,
        process=sampler.record(turn.variant, turn.cores) if turn.step is TurnStep.RECORD else None,
    )


def _describe(error: Exception) -> str:
    if isinstance(error, SuiteError | DeclarationError):
        return str(error)
    return f"{type(error).__name__} under jax {jax.__version__}: {describe_error(error)}"


def _say(stream: io.BufferedRWPair, reply: Reply) -> None:
    stream.write(msgspec.json.encode(reply) + b"\n")
    stream.flush()
