"""Every published claim that some runs have a case for, with our figure and the verdict; and where a peer is ahead.

    python -m benchmarks.published_figures RUN... > docs/published.md

Of a claim that several runs have at one size, the newest run that can tell speaks; else the newest. Sizes of a source
that were cut down stand in lines of their own.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from jaxmeter.document import numbers
from jaxmeter.document.markdown import escape
from jaxmeter.harness.metrics.derived import compare_paired, doubt_ratio
from jaxmeter.harness.metrics.reading import Case, Variant
from jaxmeter.harness.metrics.statistics import Interval, differs
from jaxmeter.reporting.compare.claims import ClaimVerdict
from jaxmeter.reporting.load import load
from jaxmeter.reporting.view.published import JudgedClaim, claim_in_words, judge_claims, write_ours, write_theirs
from jaxmeter.reporting.view.runs import choose_newest, gather_cases, group_by_machine, label_runs, name_device

HEAD = """\
# Published figures next to ours

`python -m benchmarks.published_figures` makes this page from the runs on CPUs named below; a test checks it. A verdict
is on a ratio, a count or an exponent, never on a device: [verdicts](method.md#published-figures). [a, b] is the 95 %
confidence interval; verdicts use the 99 % confidence interval. The page of a run lists, next to each claim, differences
from the source in program, data or size. Variant names are those of the original run. `cnn_epoch` and
`loaded_mnist_epoch` have changed since: `one_by_one` is now `eager_step`, and `augmented` is now `jitted_step`.
"""

PEERS = """\
## Where another library is faster

Cases in which a peer is faster than the fastest JAX variant of the same run, by the 99 % confidence interval and by
more than the minimum effect. [What the suites show](../jaxmeter/suites/README.md) gives the known causes.

| case | faster | slower | times as fast |
|---|---|---|---|"""

CLAIMS = """\
## Claims

| case | claim | theirs | ours | verdict | source |
|---|---|---|---|---|---|"""


def main() -> None:
    """Prints the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN")
    print(make_page(parser.parse_args().runs), end="")


def make_page(folders: Sequence[Path]) -> str:
    """The page of some runs.

    Raises:
      SystemExit: None of them can be read.
    """
    loaded = load(folders)
    if not loaded.runs:
        raise SystemExit("\n".join(loaded.warnings))
    runs = label_runs(loaded.runs)
    cases = gather_cases(runs)
    newest = choose_newest(group_by_machine(runs), cases)
    used = "\n".join(
        f"- {run.name}: {name_device(run)}, {run.environment.allowed_cores} cores, "
        f"jax {run.environment.packages.get('jax', 'unknown')}"
        for run in runs
    )
    claims = "\n".join(map(_write_claim, choose_claims(judge_claims(cases))))
    peers = "\n".join(_list_peers(newest)) or "| – | | | |"
    return f"{HEAD}\n{used}\n\n{CLAIMS}\n{claims}\n\n{PEERS}\n{peers}\n"


def choose_claims(claims: Iterable[JudgedClaim]) -> list[JudgedClaim]:
    """Each claim once by case: the newest run's that can tell, else the newest's."""
    chosen: dict[tuple[str, str], JudgedClaim] = {}
    for judged in sorted(claims, key=lambda judged: judged.run.manifest.started):
        key = (_name_case(judged), f"{judged.claim.source} {judged.claim.timed} {write_theirs(judged)}")
        if (
            key not in chosen
            or judged.verdict is not ClaimVerdict.UNDECIDED
            or chosen[key].verdict is ClaimVerdict.UNDECIDED
        ):
            chosen[key] = judged
    return [chosen[key] for key in sorted(chosen)]


def _name_case(judged: JudgedClaim) -> str:
    return judged.where.removesuffix(f" · {judged.run.label}")


def _write_claim(judged: JudgedClaim) -> str:
    ours = " ".join(part for part in write_ours(judged) if part not in ("", numbers.MISSING)) or numbers.MISSING
    verdict = f"{judged.verdict.value}: {judged.reason}" if judged.reason else judged.verdict.value
    cells = (_name_case(judged), claim_in_words(judged), write_theirs(judged), ours, verdict, judged.claim.source)
    return f"| {' | '.join(map(escape, cells))} |"


def _list_peers(cases: Iterable[Case]) -> Iterator[str]:
    for case in cases:
        for peer in (variant for variant in case.variants if variant.is_peer):
            leading = _find_lead(peer, case)
            if leading is not None:
                rival, lead = leading
                number = " ".join(numbers.speedup_with_bounds(lead))
                cells = (case.planned.name, peer.planned.name, rival.planned.name, number)
                yield f"| {' | '.join(map(escape, cells))} |"


def _find_lead(peer: Variant, case: Case) -> tuple[Variant, Interval] | None:
    """The fastest of JAX's variants and how far a peer is ahead of it; None where that is not sure."""
    timed = [variant for variant in case.variants if not variant.is_peer and variant.read("execution_s").interval]
    if not timed or peer.read("execution_s").interval is None:
        return None
    fastest = min(timed, key=lambda variant: variant.read("execution_s").estimate or 0.0)
    lead = compare_paired(peer, fastest)
    if lead is None or doubt_ratio(peer, fastest) or not differs(lead) or lead.estimate < 1:
        return None
    return fastest, lead


if __name__ == "__main__":
    main()
