import pytest

from reporting.compare.budgets import Allowance, BudgetError, read_budgets


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
    assert budgets.find("mlp", "mlp_step[network=784-512-10]", "peak_bytes") == Allowance(more=64)
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
        ('"*" = { compiles = true }', "is no budget"),
    ],
)
def test_what_nobody_understands_is_said_with_what_to_write(tmp_path, text, word):
    with pytest.raises(BudgetError, match=r"budgets\.toml") as caught:
        read_budgets(write(tmp_path, text))

    assert word in str(caught.value)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(BudgetError, match="cannot be read"):
        read_budgets(tmp_path / "none.toml")


def test_an_allowance_is_a_share_or_a_number_added():
    assert Allowance(share=0.05).is_exceeded(100, 106)
    assert not Allowance(share=0.05).is_exceeded(100, 105)
    assert Allowance(more=1).is_exceeded(3, 5)
    assert not Allowance(more=1).is_exceeded(3, 4)
