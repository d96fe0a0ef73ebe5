"""Records with a value that nobody has written."""

from hypothesis import strategies as st

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


def mutate(data, node):
    """Replaces one value somewhere below the node: often by one of its own kind, so that the record still reads."""
    while True:
        keys = sorted(node) if isinstance(node, dict) else range(len(node))
        key = data.draw(st.sampled_from(list(keys)))
        if isinstance(node[key], dict | list) and node[key] and data.draw(st.integers(0, 9)):
            node = node[key]
            continue
        same_kind = {str: st.text(), int: st.integers(), float: st.floats(allow_nan=False, allow_infinity=False)}
        node[key] = data.draw(JSON | same_kind.get(type(node[key]), JSON))
        return
