import msgspec

from jaxmeter.harness.record import Status
from tests import samples
from tests.golden_texts import check_golden_scenes
from tests.reporting.view.page_text import write_row
from tests.reporting.views import page_of, section


def run_of(outcome, *, planned=None, **changes):
    return samples.one_case({"f:jit": {"compilation": outcome}}, planned, **changes)


def stages(compile_s, first_call_s=1, **more):
    """Processes of which tracing and lowering take a second each."""
    known = dict.fromkeys(("trace_s", "lower_s"), (1,) * len(compile_s))
    values = {**known, "compile_s": compile_s, "first_call_s": (first_call_s,) * len(compile_s), **more}
    return samples.Outcome(status=Status.OK, values=values)


def make_runs():
    """Runs with the compilation of a variant, by what is odd about it."""
    second, wide = (1.0,) * 4, {"first_call_s": (1e-12, 1e9, 1e-12)}
    budget = samples.planned_case(variants=(msgspec.structs.replace(samples.planned_variant("f:jit"), compiles=4),))
    on_four = samples.planned_case(variants=("f:jit",), cost=samples.Cost(flops=8_000_000), devices=4)
    impossible = samples.planned_case(variants=("f:jit",), cost=samples.Cost(flops=10**400, bytes=-1))
    note = "the exported program cannot be serialised and loaded: unregistered type State"
    exported = {"executable_load_s": 0.002, "executable_first_call_s": 0.001}
    shared = {**samples.PROGRAM, "counted_flops": 2_040_000}
    return {
        # The total is the mean over processes of the sums: the cube root of 10 * 10 * 20.
        "processes of different totals": run_of(stages((1, 2, 9), first_call_s=6)),
        "a process that lacks a stage": run_of(stages((5, None))),
        "a program with one count": run_of(samples.compilation(*second, counts={"hlo_fusions": 3})),
        "one process that compiles again": run_of(stages((1, 1, 1), compiles=(1, 1, 1), recompiles=(0, 0, 1))),
        "as many programs as are declared": run_of(
            samples.compilation(*second, counts={"compiles": 4}), planned=budget
        ),
        "programs that were compiled again beyond what is declared": run_of(
            samples.compilation(*second, counts={"compiles": 4, "recompiles": 1}), planned=budget
        ),
        "a count of one of four devices": run_of(samples.compilation(*second, counts=shared), planned=on_four),
        "processes that differ beyond measure": run_of(
            samples.Outcome(status=Status.OK, values=wide), settings=samples.settings(confidence=1 - 1e-12)
        ),
        "what could not be exported": run_of(samples.compilation(*second, counts=exported, notes=(note,))),
        **{
            f"{entries} entries of the cache for 2 programs": run_of(
                samples.compilation(
                    1.0, counts={"compiles": 2} | ({} if entries is None else {"cache_entries": entries})
                )
            )
            for entries in (4, 2, None)
        },
        **{
            f"a damaged stage of {str(damaged)[:8]}": run_of(stages((damaged, damaged)))
            for damaged in (-1.0, 1e300, 10**400, None)
        },
        **{
            f"damaged counts of {str(damaged)[:8]}": run_of(
                samples.compilation(
                    *second, equations=-1, counts={**dict.fromkeys(samples.PROGRAM, damaged), "hlo_fusions": 1}
                ),
                planned=impossible,
            )
            for damaged in (-1, 1e300, 10**400, None)
        },
    }


def test_compilation_reads_as_its_golden_text():
    def lines(page):
        for part in section(page, "compilation").parts:
            for table in part.tables:
                yield " | ".join(column.title for column in table.columns)
                for group in table.groups:
                    yield from filter(None, (group.detail, *map(write_row, group.rows)))
                yield from (line for line in [table.caption] if "entries" in line)
            yield from part.notes

    check_golden_scenes("compilation", {rule: list(lines(page_of(run))) for rule, run in make_runs().items()})
