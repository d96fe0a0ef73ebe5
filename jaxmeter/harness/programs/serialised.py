"""A compiled program as bytes: what it takes to load it again, as an executable and as an exported program."""

from __future__ import annotations

import jax
from jax import export
from jax.experimental import serialize_executable

from jaxmeter.harness.programs.modes import Clock, Prepared, copy_arguments
from jaxmeter.harness.programs.older_jax import jit
from jaxmeter.harness.record import Number


def load_executable(prepared: Prepared, clock: Clock) -> dict[str, Number]:
    """Seconds to load the executable from its bytes, and of its first call, by metric.

    Raises:
      Whatever jax or the backend has against it: nothing says beforehand what can be serialised.
    """
    assert prepared.stages is not None
    compiled = prepared.stages.compiled
    written, arguments, results = serialize_executable.serialize(compiled)
    sharding = next((one for one in jax.tree.leaves(compiled.input_shardings)), None)
    devices = None if sharding is None else sorted(sharding.device_set, key=lambda device: device.id)
    start = clock()
    loaded = serialize_executable.deserialize_and_load(written, arguments, results, execution_devices=devices)
    load_s = clock() - start
    given = jax.block_until_ready(copy_arguments(prepared.args))
    start = clock()
    prepared.wait(loaded(*given))
    return {"executable_load_s": load_s, "executable_first_call_s": clock() - start}


def load_exported(prepared: Prepared, clock: Clock) -> dict[str, Number]:
    """Size of the exported program, seconds to write and to load it, and of its first call, by metric.

    Raises:
      Whatever jax has against it, such as argument types that it does not know how to write.
    """
    assert prepared.stages is not None
    options = prepared.stages.compiler_options
    start = clock()
    written = export.export(prepared.jitted)(*prepared.args).serialize()
    export_s = clock() - start
    start = clock()
    loaded = export.deserialize(written)
    load_s = clock() - start
    given = jax.block_until_ready(copy_arguments(prepared.args))
    start = clock()
    prepared.wait(jit(loaded.call, options)(*given))
    return {
        "exported_bytes": len(written),
        "export_s": export_s,
        "exported_load_s": load_s,
        "exported_first_call_s": clock() - start,
    }
