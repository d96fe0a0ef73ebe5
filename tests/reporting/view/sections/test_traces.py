"""Where the time of a step goes: the ledger of each variant, its largest operations, and why there is none."""

from jaxmeter.harness.record import Answer
from jaxmeter.harness.record.trace_summary import Finding, Problem
from jaxmeter.reporting.view.figures.stacks import SMALLEST_PART
from tests import samples
from tests.golden_texts import check_golden_scenes
from tests.reporting.view.page_text import write_row, write_text
from tests.reporting.views import page_of, section, tables

PARTS = {"compute": 0.3, "callback": 0.1, "transfer": 0.1, "dispatch": 0.2, "host amid": 0.2, "waiting": 0.1}


def case_with(workload="selu", answer=None, **traces):
    timed = {"numerics": samples.numerics(), "timing": samples.timing(1e-3, baseline_s=1e-3, spread=0)}
    outcomes = {f"{name}:jit": {**timed, **({"trace": one} if one else {})} for name, one in traces.items()}
    return samples.pair(outcomes, workload=workload, answer=answer)


def page_of_cases(*cases):
    return page_of(samples.run(*cases, settings=samples.settings(probes=("numerics", "timing", "trace"))))


def make_pages():
    """Pages with captures, by what is odd about them."""
    alike, slowed = samples.traced(1e-3), samples.traced(2e-3, 2e-3, busy=0.6)
    small = {"compute": 1 - SMALLEST_PART / 2, "waiting": SMALLEST_PART / 2}
    busy = {"compute": 0.9, "dispatch": 0.1}
    of_lines = {f"train.py:{number}": 0.15 for number in range(6)} | {"": 0.1}
    finding = Finding(problem=Problem.NO_DEVICE, text="it has no plane of the device", remedy="capture again")
    question = Answer("Which?", "g:jit", against="f:jit")
    made = {
        "one of two variants has a capture": [case_with(f=samples.traced(1e-3, 1e-3, 1e-3), g=None)],
        "all parts of a step": [case_with(f=samples.traced(1e-3, ledger=PARTS))],
        "no ledger of one": [case_with(f=samples.traced(1e-3, ledger={}), g=alike)],
        "no ledger": [case_with(f=samples.traced(1e-3, ledger={}))],
        "a part too small to be seen": [case_with(f=samples.traced(1e-3, ledger=small))],
        "a step that tracing slows down": [case_with(f=slowed)],
        "the largest overhead is of another case": [
            case_with(f=samples.traced(1e-3, ledger=busy)),
            case_with("mlp_step", f=samples.traced(1e-3, ledger=PARTS)),
        ],
        "both variants are like their timed steps": [case_with(f=alike, g=alike, answer=question)],
        "only another than the leading variant is like its timed step": [case_with(f=alike, g=slowed, answer=question)],
        "no variant is like its timed step": [case_with(f=slowed, g=slowed, answer=question)],
        "lines of the code": [case_with(f=samples.traced(1e-3, by_source=of_lines))],
        "lines of libraries alone": [case_with(f=samples.traced(1e-3, by_source={"": 1.0}))],
        "a line of the user": [case_with(f=samples.traced(1e-3, by_source={"train.py:1": 0.1, "": 0.9}))],
        "a capture that gives no number": [case_with(f=samples.traced(1e-3, findings=(finding,)))],
        "several bounds": [
            case_with(
                f=samples.traced(1e-3, 1e-3),
                g=samples.traced(1e-3, 1e-3, busy=0.2),
                h=samples.traced(2e-3, 2e-3, busy=0.5),
                i=samples.traced(1e-3, busy=0.4, ledger={"compute": 0.4, "dispatch": 0.3, "waiting": 0.3}),
            )
        ],
    }
    return {rule: page_of_cases(*cases) for rule, cases in made.items()}


def write_traces(page):
    """The section, the card of the first screen, that of the first case, and the answer."""
    for table in tables(page, "traces"):
        yield " | ".join(column.title for column in table.columns)
        yield from map(write_row, table.rows)
    yield from (note for part in section(page, "traces").parts for note in part.notes)
    yield f"first screen: {page.overview.time and write_text(page.overview.time)}"
    for card in page.suites[0].cases[0].figures:
        yield from [f"case: {write_text(card)}"] if card.id == "time" else []
    yield from (f"answer: {line.text}" for line in page.answers if line.suite == "traces")


def test_captures_read_as_their_golden_text():
    check_golden_scenes("traces", {rule: list(write_traces(page)) for rule, page in make_pages().items()})
