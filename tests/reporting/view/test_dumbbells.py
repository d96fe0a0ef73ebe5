from jaxmeter.reporting.view.dumbbells import MOST_BARS, make_dumbbells
from tests import samples
from tests.reporting.views import page_of


def figure_of(*pairs):
    page = page_of(samples.run(*pairs))
    return make_dumbbells(page.runs[0], page.cases)


def timed(planned, **times):
    return samples.record(planned, {name.replace("_", ":"): {"timing": samples.timing(s)} for name, s in times.items()})


def test_an_implementation_is_a_bar_with_an_end_for_each_mode():
    planned = samples.planned_case(variants=("f:eager", "f:jit", "g:jit"))

    figure = figure_of((planned, timed(planned, f_eager=1e-3, f_jit=1e-4, g_jit=2e-4)))

    assert [bar.name.rpartition(" · ")[2] for bar in figure.bars] == ["f", "g"]
    assert [(end.mode, round(end.time_s, 6)) for end in figure.bars[0].ends] == [("eager", 1e-3), ("jit", 1e-4)]
    assert all(end.bounds[0] < end.time_s < end.bounds[1] for end in figure.bars[0].ends)


def test_what_has_no_time_has_no_end_and_nothing_timed_has_no_figure():
    planned = samples.planned_case(variants=("f:eager", "f:jit"))

    assert [end.mode for end in figure_of((planned, timed(planned, f_jit=1e-4))).bars[0].ends] == ["jit"]
    assert figure_of((planned, samples.record(planned, {}))) is None


def test_more_bars_than_one_glance_takes_in_are_counted():
    pairs = []
    for n in range(MOST_BARS + 3):
        planned = samples.planned_case(params={"size": n}, variants=("f:jit",))
        pairs.append((planned, timed(planned, f_jit=1e-4)))

    figure = figure_of(*pairs)

    assert len(figure.bars) == MOST_BARS
    assert figure.title.endswith(" 3 more in the table.")


def test_a_bar_with_a_contended_time_is_marked():
    planned = samples.planned_case(variants=("f:jit",))
    record = samples.record(planned, {"f:jit": {"timing": samples.timing(1e-3, contended=3)}})

    figure = figure_of((planned, record))
    assert figure.bars[0].name.startswith("! selu[")
    assert "!: contended." in figure.title
