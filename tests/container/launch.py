"""Measuring on the CPU as `nox -s cpu` does, without nox; a program of its own too, so that it can be sent signals."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from jaxmeter.harness.record import make_run_id
from jaxmeter.launch.command_line import read_request
from jaxmeter.launch.containers import Caller, caller_here
from jaxmeter.launch.engines import Engine
from jaxmeter.launch.host import look_at_host
from jaxmeter.launch.jobs import Job, measure_in_container
from jaxmeter.launch.request import choose_engine
from jaxmeter.launch.runs import plan_run

CHECKOUT = Path(__file__).parents[2]


def cpu_job(engine: Engine, caller: Caller, *arguments: str) -> Job:
    request = read_request("cpu", arguments, {**os.environ, "JAXMETER_RUNTIME": "auto"})  # as the noxfile sets it
    run = plan_run(request.arguments, make_run_id("cpu"))
    return Job("cpu", request, run, engine, look_at_host(), caller, CHECKOUT, os.environ)


if __name__ == "__main__":
    engine, _ = choose_engine("container", os.environ)
    assert engine is not None
    try:
        sys.exit(measure_in_container(cpu_job(engine, caller_here(os.environ), *sys.argv[1:])))
    except KeyboardInterrupt:
        sys.exit(130)
