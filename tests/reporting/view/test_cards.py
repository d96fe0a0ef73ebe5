"""Cards of the first screen: which stand there, and what reports of releases say."""

import pytest

from jaxmeter.document.model import Tone
from jaxmeter.harness.metrics.statistics import Interval
from jaxmeter.harness.record import Answer, CompilationDetails, Cost, Outcome, Status, Trap
from jaxmeter.harness.record.cases import Reported
from jaxmeter.reporting.compare.verdicts import Here, JudgedReport
from jaxmeter.reporting.view.cards import FEWEST_ASKED, MOST_CARDS, make_reports_card, split_cards
from jaxmeter.reporting.view.page_model import Card, Phrase
from tests import samples
from tests.golden_texts import check_golden_scenes
from tests.reporting.view.page_text import write_text
from tests.reporting.views import card_of, page_of


def make_cards(asked, others=0):
    said = (Phrase("An answer."),)
    return [
        *(Card(f"asked-{number}", "Which?", said) for number in range(asked)),
        *(Card(f"other-{number}", "Suite", said, is_asked=False) for number in range(others)),
    ]


def test_the_first_screen_shows_declared_questions_and_other_suites_where_few_are_answered():
    shown, more = split_cards(make_cards(FEWEST_ASKED, 3))
    few, _ = split_cards(make_cards(FEWEST_ASKED - 1, 9))
    unanswered = Card("a", "Which?", (Phrase("No answer: skipped.", tone=Tone.MUTED),))

    assert [card.id for card in shown] == [f"asked-{number}" for number in range(FEWEST_ASKED)]
    assert [card.id for card in more] == ["other-0", "other-1", "other-2"]
    assert len(few) == MOST_CARDS
    assert "other-0" in [card.id for card in split_cards([*make_cards(FEWEST_ASKED - 1, 1), unanswered])[0]]


REPORT = Reported(source="jax issue 1", before="0.4.31", after="0.4.33", factor=20.0)


def make_report(here, *ours):
    ratio = Interval(*ours, 5) if ours else None
    names = {"releases": ("0.4.31", "0.4.33")}
    return JudgedReport(REPORT, "array_walk[n=20000]", "array_walk:jit", 20.0, ratio, here, **names)


REPRODUCED = make_report(Here.REPRODUCED, 18.0, 20.0, 22.0)
OTHERS = make_report(Here.OPPOSITE, 0.4, 0.5, 0.6), make_report(Here.NOT_HERE, 0.98, 1.01, 1.05)
TRAPS = CompilationDetails(traps=(Trap(kind="dead_work", evidence="98 % of the traced FLOPs"),))


def time_both(ratio, **changes):
    return {"f:eager": samples.timing(1e-3), "f:jit": samples.timing(1e-3 / ratio, baseline_s=1e-3, **changes)}


def trap_jit(ratio):
    """Times of which jit has a trap."""
    times = time_both(ratio)
    return times | {"f:jit": {"timing": times["f:jit"], "compilation": Outcome(status=Status.OK, details=TRAPS)}}


def ask_of_stages(metric, figure=""):
    """Two variants that were compiled by stages of 0.1, 0.2, 0.3 and 0.4 s."""
    stages = {"compilation": samples.compilation(0.1, 0.2, 0.3, 0.4, processes=3)}
    answer = Answer("?", "f:jit", "g:jit", metric=metric, figure=figure)
    return samples.one_case({"f:jit": stages, "g:jit": stages}, {"answer": answer})


def asked(suite="selu", rank=None, n=100, **changes):
    """A case whose answer is how much faster g is than f."""
    times = {"f:jit": samples.timing(1e-3, **changes), "g:jit": samples.timing(5e-4, baseline_s=1e-3, **changes)}
    return samples.pair(times, workload=suite, params={"n": n}, answer=Answer("Which?", "g:jit", "f:jit", rank=rank))


def make_pages():
    """What is shown of suites, by the rule."""
    busy = {"f:eager": samples.timing(1e-3, contended=3), "f:jit": samples.timing(5e-4, baseline_s=1e-3, contended=3)}
    first_calls = {name: {"compilation": samples.compilation(0.1, processes=3)} for name in ("f:mixed", "g:mixed")}
    first_call = Answer("?", "f:mixed", metric="first_call_s")
    memory = {"environment": samples.environment(device_memory_bytes=10_000)}
    memory |= {"settings": samples.settings(probes=("memory",))}
    fifty = samples.pair(time_both(50), workload="b")
    runs = {
        "what jit is worth, from the smallest to the largest": [
            samples.run(samples.pair(time_both(2), workload="a"), fifty)
        ],
        "a speedup of contended times counts": [samples.run(samples.pair(busy, workload="a"), fifty)],
        "a speedup with a trap does not": [
            samples.run(samples.pair(time_both(2), workload="a"), samples.pair(trap_jit(50), workload="b"))
        ],
        "every speedup has a trap": [samples.run(samples.pair(trap_jit(50)))],
        "a speedup that is not to be trusted": [samples.run(samples.pair(time_both(4, doubtful_ratios=True)))],
        **{
            f"an answer by {metric}, which variants do not have": [
                samples.run(samples.pair(time_both(4), answer=Answer("How does it taste?", "f:jit", metric=metric)))
            ]
            for metric in ("taste", "compile_exponent")
        },
        **{
            f"a figure of {figure}, which has nothing to show": [
                samples.run(
                    samples.pair(time_both(4), answer=Answer("?", "f:jit", metric="execution_s", figure=figure))
                )
            ]
            for figure in ("ledger", "stages")
        },
        "first calls without stages": [samples.one_case(first_calls, {"answer": first_call})],
        "two devices answer by different cases": [
            samples.run(asked(n=n), run_id=backend, backend=backend, machine=backend)
            for backend, n in (("cpu", 100), ("gpu", 9_000))
        ],
        "an answer that is not to be relied on comes last": [
            samples.run(asked("a", 1, doubtful_ratios=True), asked("b", 2), asked("c", 3))
        ],
        **{
            f"an answer by {metric}": [ask_of_stages(metric)]
            for metric in ("compile_total_s", "first_result_s", "first_call_s", "compile_s", "trace_s")
        },
        "an answer by another quantity than the figure's": [ask_of_stages("first_call_s", "stages")],
        "the largest plan of each workload": [
            samples.one_case(
                {"f:jit": {"memory": samples.memory(0, 0, temp)}}, {"params": {"n": n}}, run_id=str(n), **memory
            )
            for n, temp in ((100, 1_000), (200, 9_000))
        ],
    }
    return {rule: page_of(*made) for rule, made in runs.items()}


def test_cards_read_as_their_golden_text():
    def lines(overview):
        for card in filter(None, (overview.jit, *overview.cards)):
            yield write_text(card)
        yield from (
            f"{fact.name}: {fact.values[0].text} {fact.target}" for fact in overview.trust if "trap" in fact.name
        )

    reports = {
        "reports are drawn as measured and counted": (REPRODUCED, *OTHERS, make_report(Here.UNDECIDED)),
        "every report has a colour": (REPRODUCED,),
        "no report is measured": (make_report(Here.UNDECIDED),),
        "no report": (),
    }
    scenes = {rule: list(lines(page.overview)) for rule, page in make_pages().items()}
    scenes |= {rule: write_text(make_reports_card(list(made)) or "no card") for rule, made in reports.items()}
    check_golden_scenes("cards", scenes)


@pytest.mark.parametrize("is_asked_of_both", [True, False])
def test_the_card_and_the_table_of_devices_answer_by_one_case(is_asked_of_both):
    answer = Answer("How fast?", "g:jit", "f:jit")
    pairs = []
    for n, ratio in ((100, 4), (1000, 2)):
        late = {"f:jit": samples.timing(1e-3), "g:jit": samples.timing(1e-3 / ratio, baseline_s=1e-3)}
        late = {name: samples.with_values(one, return_s=one.values["execution_s"]) for name, one in late.items()}
        declared = answer if is_asked_of_both or n == 100 else None
        pairs.append(samples.pair(late, workload="pair", params={"n": n}, answer=declared, cost=Cost(flops=n)))

    page = page_of(samples.run(*pairs))

    card, (cell,) = card_of(page.overview.cards, "pair"), page.matrix.groups[0].rows[0].cells[1:]
    number = "2.0×" if is_asked_of_both else "4.0×"
    assert number in card.phrases[0].text
    assert number in cell.text
