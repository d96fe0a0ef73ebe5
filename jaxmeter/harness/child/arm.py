"""One side of lock-step: a process that runs a case in its environment, in turns with one of another environment.

The parent starts it (parent/sides.py, child/begin.py) with the path of a socket. It runs under any jax from 0.9 on, and
needs jax, numpy, msgspec and what the suites need. It says on stdout which versions it has; then every connection to
the socket is answered by a process of its own, forked where jax and suites are imported and no backend has begun.
"""

from __future__ import annotations

import gc
import io
import os
import platform as host_platform
import select
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

import jax
import msgspec

from jaxmeter.harness.child.case import find_workload, set_up_jax
from jaxmeter.harness.child.describe import find_missing_device
from jaxmeter.harness.child.family import begin_session
from jaxmeter.harness.child.inputs import find_inputs
from jaxmeter.harness.child.preload import import_early, import_suites
from jaxmeter.harness.declare.catalogue import SuiteError
from jaxmeter.harness.declare.levels import DeclarationError
from jaxmeter.harness.machine.affinity import LOCK_STEP_CORES, keep_on_cores
from jaxmeter.harness.machine.environment import describe_error, list_packages
from jaxmeter.harness.machine.interference import Interference, ReadInterference
from jaxmeter.harness.plan.turns import Begin, Done, Ready, Reply, Step, Turn
from jaxmeter.harness.probes.context import Context
from jaxmeter.harness.probes.sampler import Sampler
from jaxmeter.harness.programs.arguments import hash_arguments, unpack_numbers
from jaxmeter.harness.programs.caches import use_cache


def serve(path: str, *suites: str) -> None:
    """Serves until the parent ends.

    Args:
      path: Of the socket.
      suites: What is imported first, where it can be.
    """
    told = os.dup(1)
    os.dup2(2, 1)  # what is imported may print
    import_early()
    import_suites(suites)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        gc.collect()
        gc.freeze()
        ready = Ready(python=host_platform.python_version(), packages=list_packages())
        os.write(told, msgspec.json.encode(ready) + b"\n")
        os.close(told)
        _accept(listener)


def _accept(listener: socket.socket) -> None:
    """Answers every connection by a process of its own, and ends those whose measuring process is gone.

    Not a thread of theirs: beside one, eager code takes 3 % longer.
    """
    poll = select.poll()
    poll.register(listener, select.POLLIN)
    running: dict[int, _Running] = {}
    while True:
        descriptor, _ = poll.poll()[0]  # one at a time: the next may get the number of what is closed now
        if descriptor == listener.fileno():
            begun = _fork(listener, running.values())
            running[begun.connection.fileno()] = running[begun.ended] = begun
            poll.register(begun.connection, select.POLLRDHUP)
            poll.register(begun.ended, select.POLLIN)
        else:
            gone = running[descriptor]
            gone.end()
            for one in (gone.connection.fileno(), gone.ended):
                del running[one]
                poll.unregister(one)
            gone.close()


@dataclass(frozen=True)
class _Running:
    """A process that answers.

    Args:
      connection: Whose other end is the measuring process's.
      ended: A descriptor that can be read once the process has ended.
    """

    pid: int
    connection: socket.socket
    ended: int

    def end(self) -> None:
        """Ends it with all that it has started."""
        for kill in (os.killpg, os.kill):  # until it has made its session it has no group
            with suppress(ProcessLookupError, PermissionError):
                kill(self.pid, signal.SIGKILL)

    def close(self) -> None:
        """Closes both descriptors."""
        self.connection.close()
        os.close(self.ended)


def _fork(listener: socket.socket, running: Iterable[_Running]) -> _Running:
    connection, _ = listener.accept()
    server = os.getpid()
    pid = os.fork()
    if pid == 0:
        listener.close()
        for other in set(running):  # whoever holds a connection keeps it open
            other.close()
        _answer(connection, server)
    return _Running(pid, connection, os.pidfd_open(pid))


def _answer(connection: socket.socket, server: int) -> None:
    """Serves one measuring process, and ends without returning."""
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        begin_session(server)
        with connection.makefile("rwb") as stream:
            _serve(stream)
    except BaseException:  # noqa: BLE001  whatever it was, whoever looks into stderr shall read it
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os.killpg(0, signal.SIGKILL)  # with all that it has started


def _serve(stream: io.BufferedRWPair) -> None:
    """Prepares what is asked for, and takes turns until the measuring process is gone."""
    begin = msgspec.json.decode(stream.readline(), type=Begin)
    try:
        context = _begin(begin)
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
                if turn.step is Step.INPUTS:
                    reply = Reply(done=_take_inputs(context, stream.read(turn.size)))
                else:
                    if turn.step is Step.PREPARE:
                        samplers[turn.variant] = _prepare(turn.variant, context, begin)
                    reply = Reply(done=_take(turn, samplers[turn.variant], interference))
            except Exception as error:  # noqa: BLE001  as above
                reply = Reply(refusal=_describe(error))
            _say(stream, reply)


def _begin(begin: Begin) -> Context:
    """The case, as this environment has it.

    Raises:
      SuiteError: It has no such case, or another.
      Whatever the suites raise.
    """
    if begin.platform.is_host:
        keep_on_cores(LOCK_STEP_CORES, begin.core)
    use_cache(begin.cache)
    set_up_jax(begin.case, begin.platform)
    workload, now = find_workload(begin.case, begin.settings.suites, begin.platform)
    if (problem := find_missing_device(begin.platform)) is not None:
        raise SuiteError(problem)
    if now.definition != begin.case.definition:
        raise SuiteError(f"inputs, reference or cost of {begin.case.name} are others there")
    return Context(
        workload=workload,
        params=begin.case.params,
        platform=begin.platform,
        arguments=find_inputs(workload, begin.case.params, Path(begin.inputs)),
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
    own = {} if context.case is None else {one.name: one.source for one in context.case.variants}
    if own.get(variant) != begin.sources.get(variant):
        raise SuiteError("its code there is not what the run has measured; give that run's own checkout")
    prepared = context.prepare(variant)
    prepared.reset()
    prepared.wait(prepared.call(*prepared.args))
    gc.collect()
    return Sampler(prepared, time.perf_counter, begin.settings.sample_s)


def _take(turn: Turn, sampler: Sampler, interference: ReadInterference) -> Done:
    """Does what is asked."""
    steps: Mapping[Step, Callable[[], object]] = {
        Step.CALIBRATE: sampler.calibrate,
        Step.WARM_UP: sampler.warm_up,
        Step.BLOCK: lambda: sampler.take_block(turn.pass_number, turn.block_s, interference),
        Step.ISOLATED: lambda: sampler.take_isolated(turn.count, turn.block_s),
        Step.RETURN: sampler.take_returns,
    }
    if turn.step in steps:
        steps[turn.step]()
    return Done(
        cpu_s=time.process_time(),
        calls=sampler.calls,
        call_s=sampler.call_s,
        returns_early=sampler.returns_early,
        process=sampler.record(turn.variant, turn.cores) if turn.step is Step.RECORD else None,
    )


def _describe(error: Exception) -> str:
    if isinstance(error, SuiteError | DeclarationError):
        return str(error)
    return f"{type(error).__name__} under jax {jax.__version__}: {describe_error(error)}"


def _say(stream: io.BufferedRWPair, reply: Reply) -> None:
    stream.write(msgspec.json.encode(reply) + b"\n")
    stream.flush()
