"""Which stretches of a run count."""

import pytest

from benchmarks.parent_cost import Moment, add_up


def test_only_stretches_in_which_one_measuring_process_lived_count():
    moments = [
        Moment(0.0, None, parent_s=0.0, server_s=0.0),
        Moment(1.0, 7, parent_s=0.9, server_s=0.5),
        Moment(3.0, 7, parent_s=0.92, server_s=0.51),
        Moment(4.0, 8, parent_s=1.9, server_s=0.9),
        Moment(6.0, 8, parent_s=1.94, server_s=0.9),
    ]

    assert add_up(moments) == pytest.approx((4.0, 0.015, 0.0025))


def test_a_run_in_which_nothing_was_seen_is_no_figure():
    with pytest.raises(RuntimeError, match="no measuring process"):
        add_up([Moment(0.0, None, 0.0, 0.0), Moment(1.0, 7, 0.0, 0.0)])
