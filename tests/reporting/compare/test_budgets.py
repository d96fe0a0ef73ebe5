import pytest

from jaxmeter.reporting.compare.budgets import Allowance, LimitError, read_budgets


def write(tmp_path, text):
    path = tmp_path / "budgets.toml"
    path.write_text(text)
    return path


def test_a_budget_is_found_by_suite_and_case_and_brackets_mean_themselves(tmp_path):
    path = write(
        tmp_path,
        '"mlp/mlp_step[network=784-512-10]" = { time = "10%" }\n'
        '"mlp/*" = { time = "5 %", peak_memory = 64, compiles = 0 }\n',
    )

    budgets = read_budgets(path)

    assert budgets.find("mlp", "mlp_step[network=784-512-10]", "execution_s") == Allowance(share=0.1)
    assert budgets.find("mlp", "mlp_step[network=784-512-10]", "planned_peak_bytes") == Allowance(more=64)
    assert budgets.find("mlp", "other", "execution_s") == Allowance(share=0.05)
    assert budgets.find("cnn", "cnn_step", "execution_s") == Allowance(share=0.03)
    assert budgets.find("cnn", "cnn_step", "hlo_fusions") is None


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("no toml", "is no TOML"),
        ('"*" = 5', 'write "*" = { time = "5%" }'),
        ('"*" = { tme = "5%" }', "nearest: time"),
        ('"*" = { time = 5 }', 'write "5%"'),
        ('"*" = { time = "much" }', 'write "5%"'),
        ('"*" = { compiles = -1 }', "a number that may be added"),
        ('"*" = { compiles = true }', "is not a budget"),
        (None, "cannot be read"),
    ],
)
def test_what_nobody_understands_is_said_with_what_to_write(tmp_path, text, word):
    path = tmp_path / "budgets.toml" if text is None else write(tmp_path, text)
    with pytest.raises(LimitError, match=r"budgets\.toml") as caught:
        read_budgets(path)

    assert word in str(caught.value)


def test_numbers_that_may_be_added_are_read_as_they_are(tmp_path):
    budgets = read_budgets(write(tmp_path, '"*" = { fusions = 0, flops = 2.5, recompiles = "12.5%", time = "0%" }'))

    found = {name: budgets.find("s", "c", name) for name in ("hlo_fusions", "counted_flops", "recompiles")}
    assert found == {
        "hlo_fusions": Allowance(more=0),
        "counted_flops": Allowance(more=2.5),
        "recompiles": Allowance(share=0.125),
    }
    assert budgets.find("s", "c", "execution_s") == Allowance(share=0)
    assert budgets.least_time(0.03) == 0.03  # nothing is told below what is worth a verdict


def test_a_metric_that_the_first_pattern_leaves_out_is_looked_for_in_the_next(tmp_path):
    budgets = read_budgets(write(tmp_path, '"a/*" = { compiles = 1 }\n"*" = { time = "9%", compiles = 2 }'))

    assert budgets.find("a", "x", "compiles") == Allowance(more=1)
    assert budgets.find("a", "x", "execution_s") == Allowance(share=0.09)
    assert budgets.find("b", "x", "compiles") == Allowance(more=2)


def test_patterns_know_capitals_and_the_smallest_time_is_known(tmp_path):
    budgets = read_budgets(write(tmp_path, '"A/*" = { compiles = 1, time = "1%" }'))

    assert budgets.find("a", "x", "compiles") == Allowance(more=0)
    assert (budgets.find_unused(["a/x"]), budgets.find_unused(["A/x"])) == (["A/*"], [])
    assert budgets.least_time(0.03) == 0.01


def test_an_allowance_is_a_share_or_a_number_added():
    assert Allowance(share=0.05).is_exceeded(100, 106)
    assert not Allowance(share=0.05).is_exceeded(100, 105)
    assert Allowance(more=1).is_exceeded(3, 5)
    assert not Allowance(more=1).is_exceeded(3, 4)
