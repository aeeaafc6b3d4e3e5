"""UUIDs as text, as Python's own module understands them."""

import uuid

from auth import uuids


def test_a_new_one_is_random():
    made = [uuid.UUID(uuids.new()) for _ in range(1000)]
    assert {(each.version, each.variant) for each in made} == {(4, uuid.RFC_4122)}
    assert len(set(made)) == 1000
    # Each bit is set in some, and not in others, but for four of the version and four, not two, beside the variant.
    always, never = ~0, 0
    for each in made:
        always, never = always & each.int, never | each.int
    assert (never & ~always & (2**128 - 1)).bit_count() == 120


def test_it_is_spelled_and_read_as_others_do():
    for _ in range(100):
        one = uuid.uuid4()
        assert uuids.spelled(one.hex) == str(one)
        assert uuids.as_bytes(str(one)) == one.bytes
