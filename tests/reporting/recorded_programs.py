"""Programs of two operations, and runs on disk that keep them."""

import hashlib

from jaxmeter.harness.metrics.reading import Run
from jaxmeter.harness.record import Artifact, Outcome, RunFolder, Status, write_bytes
from jaxmeter.harness.record.files import EXPORTED, PROGRAM_TEXTS
from jaxmeter.reporting.compare.program_diff import compare_programs
from jaxmeter.reporting.compare.programs import Pair, Program
from tests import samples

JAXPR = """{ lambda ; a:f32[8]. let
    b:f32[8] = mul a 2.0:f32[]
  in (b,) }"""

STABLEHLO = """module @jit_f {
  func.func public @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
    %0 = stablehlo.multiply %arg0, %arg0 : tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}
"""

HLO = """HloModule jit_f, entry_computation_layout={(f32[8,2]{1,0})->f32[8,2]{1,0}}

%inner (p: f32[8,2]) -> f32[8,2] {
  %p = f32[8,2]{1,0} parameter(0)
  %b = f32[8,2]{1,0} multiply(%p, %p)
  ROOT %t = f32[8,2]{1,0} tanh(%b)
}

ENTRY %main (x: f32[8,2]) -> f32[8,2] {
  %x = f32[8,2]{1,0} parameter(0), metadata={op_name="x"}
  %n = f32[8,2]{1,0} negate(%x), metadata={op_name="jit(f)/neg"}
  ROOT %f = f32[8,2]{1,0} fusion(%n), kind=kLoop, calls=%inner, \
metadata={op_name="jit(f)/tanh" source_file="/home/somebody/suites/selu.py" source_line=12}
}
"""

TEXTS = {"jaxpr": JAXPR, "stablehlo": STABLEHLO, "hlo": HLO}

OTHER = {
    "jaxpr": JAXPR.replace("mul a 2.0:f32[]", "add a 2.0:f32[]"),
    "stablehlo": STABLEHLO.replace("multiply", "add"),
    "hlo": HLO.replace("multiply", "add"),
}

PLANNED = {"planned_peak_bytes": 1200, "argument_bytes": 64, "output_bytes": 64, "temp_bytes": 1072, "alias_bytes": 0}


def program(texts=TEXTS, *, memory=PLANNED, fingerprints=(), source="0", definition="0"):
    return Program(texts, memory, fingerprints, source, definition)


def compared(a, b):
    """Two programs, or two optimised texts."""
    a, b = (program({"hlo": one}) if isinstance(one, str) else one for one in (a, b))
    return compare_programs(Pair("selu[n=1]", "selu:jit", a, b))


def recorded(folder, texts=TEXTS, *, case=None, memory=PLANNED, change=lambda artifact: artifact, **changes):
    """A run on disk whose only case keeps these texts for `selu:jit`, or for each of the variants that they are of."""
    planned = case or samples.planned_case(params={"n": 1})
    place, artifacts = RunFolder(folder).case(planned.id), []
    for variant, kept in (texts if "hlo" not in texts and "jaxpr" not in texts else {"selu:jit": texts}).items():
        for kind, text in kept.items():
            path = place.exported(variant) if kind == EXPORTED else place.programs(variant) / PROGRAM_TEXTS[kind]
            write_bytes(path, text.encode(), lasting=False)
            told = {"path": str(path.relative_to(place.path)), "size_bytes": len(text)}
            digest = hashlib.sha256(text.encode()).hexdigest()
            artifacts.append(change(Artifact(kind=kind, variant=variant, sha256=digest, **told)))
    outcome = Outcome(status=Status.OK, values={name: (value,) for name, value in memory.items()})
    outcomes = {variant.name: {"memory": outcome} for variant in planned.variants}
    ended = samples.record(planned, outcomes, artifacts=tuple(artifacts))
    run = samples.run((planned, ended), run_id=folder.name, **changes)
    samples.write_run(folder, run)
    return Run(run, RunFolder(folder))
