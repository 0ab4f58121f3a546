"""Table features of protocols."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zadapter_delta.table.features import TESTED, features, find_untested

LEGACY = [
    ((1, 1), ""),
    ((1, 2), "appendOnly invariants"),
    ((1, 3), "appendOnly checkConstraints invariants"),
    ((1, 4), "appendOnly changeDataFeed checkConstraints generatedColumns invariants"),
    ((1, 5), "appendOnly changeDataFeed checkConstraints generatedColumns invariants"),
    (
        (2, 6),
        (
            "appendOnly changeDataFeed checkConstraints columnMapping generatedColumns "
            "identityColumns invariants"
        ),
    ),
]


@pytest.mark.parametrize(("versions", "implied"), LEGACY)
def test_versions_imply_features(versions, implied):
    """As PROTOCOL.md has them, in "Valid Feature Names in Table Features"."""
    protocol = dict(zip(("minReaderVersion", "minWriterVersion"), versions, strict=True))

    assert sorted(features(protocol)) == implied.split()
    assert find_untested(protocol) == []


def test_a_protocol_that_lists_features_has_no_others():
    """Writer version 7 implies none."""
    assert features({"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": []}) == set()


NAMES = st.sampled_from(sorted(TESTED)) | st.text(min_size=1)


@given(st.frozensets(NAMES), st.frozensets(NAMES))
def test_every_other_name_is_untested(reader, writer):
    """Known to Delta or not; also a tested name in other letters."""
    protocol = {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": sorted(reader),
        "writerFeatures": sorted(writer),
    }

    assert find_untested(protocol) == sorted((reader | writer) - TESTED)
