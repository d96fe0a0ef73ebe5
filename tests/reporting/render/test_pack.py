import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxmeter.reporting.render import html as packing
from jaxmeter.reporting.render.html import make_chunks, make_index, pack, unpack
from tests import samples
from tests.reporting.views import page_of


def read(index, name):
    column = index["columns"][name]
    return [column["words"][row] for row in column["rows"]] if isinstance(column, dict) else column


@given(
    st.recursive(
        st.none() | st.text() | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_what_is_packed_can_be_unpacked_and_ends_no_script(data):
    text = pack(data)

    assert text == pack(data)
    assert "<" not in text
    assert unpack(text) == data


def test_packed_data_tell_no_time_and_a_lone_surrogate_does_not_stop_a_page():
    assert base64.b85decode(pack([]))[4:8] == bytes(4)
    assert unpack(pack(["\ud800"])) == ["?"]


@given(
    st.dictionaries(st.text(min_size=1), st.lists(st.tuples(st.sampled_from("abc"), st.text(max_size=20)), max_size=4))
)
def test_every_piece_is_put_together_again_from_one_chunk(pieces):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packing, "LARGEST_CHUNK", 30)
        chunks = [unpack(pack(chunk)) for chunk in make_chunks(pieces)]

    made = {name: text for chunk in chunks for name, text in chunk.items()}
    assert made == {name: "".join(text for _, text in own) for name, own in pieces.items()}
    assert sum(map(len, chunks)) == len(pieces)
    sizes = [sum(map(len, chunk.values())) for chunk in chunks]
    assert all(size >= 30 for size in sizes[:-1])


def test_more_words_than_letters_below_the_halves_of_pairs_are_put_together_again():
    text = "".join(f"<p>{chr(0x4E00 + number % 20_000)}{number // 20_000 * 'y'}" for number in range(60_000))

    (chunk,) = map(unpack, map(pack, make_chunks({"a": [("kind", text)]})))

    assert chunk == {"a": text}


def test_numbers_are_kept_by_what_stands_before_them():
    (chunk,) = make_chunks({"a": [("kind", '<circle cx="1.5" cy="20"/><circle cx="2.5" cy="20"/>')]})

    assert chunk["numbers"] == {'cx="': "1.5 2.5", 'cy="': "20 20"}


def test_the_index_has_a_row_for_each_result_with_its_numbers():
    page = page_of(samples.run(), samples.gpu_run())

    index = make_index(page, [{"ids": {"suite=selu": []}}, {"ids": {"case=selu/x": []}}])

    assert index["suites"] == [{"id": "suite=selu", "name": "selu"}]
    assert index["cases"] == [{"id": case.id, "name": case.name} for case in page.suites[0].cases]
    results = [result for case in page.suites[0].cases for result in case.results]
    assert read(index, "variant") == [result.variant for result in results]
    assert sorted(set(read(index, "where"))) == ["■ gpu", "● cpu"]
    assert read(index, "time") == [result.time.text for result in results]
    assert read(index, "time_value") == [pytest.approx(result.time.value, rel=1e-4) for result in results]
    assert read(index, "speedup_low")[0] is None
    assert index["chunks"] == {"case=selu/x": 1}
    assert index["columns"]["status"] == {"words": ["ok"], "rows": [0] * len(results)}
    assert isinstance(index["columns"]["time"], list)
