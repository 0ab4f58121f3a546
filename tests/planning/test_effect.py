"""A rewrite happens if filters read less afterwards."""

import pytest

from zadapter.planning.effect import Effect, compute_gain, row_group_shares


def effect(files=(10, 10), shares=(1.0, 1.0), row_groups=(None, None), rows=100, **facts):
    """Return an effect; each argument is a pair of before and after."""
    return Effect(
        **{"clustered": False} | facts,
        rows=rows,
        files_before=files[0],
        files_after=files[1],
        share_before=shares[0],
        share_after=shares[1],
        row_group_share_before=row_groups[0],
        row_group_share_after=row_groups[1],
    )


@pytest.mark.parametrize(
    ("case", "pays"),
    [
        ({"shares": (1.0, 0.3)}, True),
        ({"shares": (0.18, 1.0)}, False),
        ({"shares": (0.3, 0.3)}, False),
        ({"shares": (0.300, 0.299)}, False),
        # one file, but row groups that filters can skip
        ({"files": (1, 1), "row_groups": (1.0, 0.2)}, True),
        # 21 small files of 16 row groups each, to one file of 16
        ({"files": (21, 1), "shares": (0.18, 1.0), "row_groups": (0.05, 0.2)}, False),
        # fewer files, of which engines read less
        ({"files": (12, 1), "shares": (0.5, 1.0), "row_groups": (0.5, 0.2)}, True),
        ({"shares": (1.0, 0.5), "row_groups": (0.1, 0.3)}, False),
        ({"shares": (1.0, 0.5), "row_groups": (0.1, 0.1)}, True),
        # many small files, none of which can be skipped, are merged
        ({"files": (10, 5)}, True),
        ({"files": (10, 6)}, False),
        # small files in the order of the key: merged, though each then holds more
        ({"files": (5000, 100), "shares": (0.0534, 0.0633), "row_groups": (0.0534, 0.0539)}, True),
        ({"files": (10, 10), "shares": (0.05, 0.06), "row_groups": (0.05, 0.05)}, False),
        ({"shares": (1.0, 0.5), "row_groups": (0.0040, 0.0042)}, True),
        # but not if a layout of other columns would be lost for it
        ({"files": (10, 5), "clustered": True}, False),
        ({"shares": (1.0, 0.3), "clustered": True}, True),
        ({"files": (0, 0), "shares": (0.0, 0.0)}, True),
    ],
)
def test_a_rewrite_pays_if_filters_read_less(case, pays):
    assert effect(**case).pays is pays


def test_shares_of_several_rewrites_are_weighed_by_rows():
    """And are unknown if one of them is."""
    one, three = (
        effect(row_groups=(0.8, 0.4), rows=100),
        effect(row_groups=(0.4, 0.0), rows=300),
    )

    assert row_group_shares([one, three]) == pytest.approx((0.5, 0.1))
    assert row_group_shares([one, effect()]) is None
    assert row_group_shares([]) is None


@pytest.mark.parametrize(
    ("effects", "shares", "inside", "gain"),
    [
        ([], (0.5, 0.1), 0.5, 0.8),
        ([], (0.0, 0.0), 0.0, 0.0),
        ([], (0.1, 0.2), 0.1, 0.0),
        # row groups of all rows decide, whatever is read by file
        ([{"row_groups": (0.8, 0.2)}], (1.0, 1.0), 1.0, 0.75),
        ([{"row_groups": (0.8, 0.2)}], (1.0, 0.1), 1.0, 0.75),
        ([{"row_groups": (0.2, 0.8)}], (1.0, 0.1), 1.0, 0.0),
        # unless nothing changes for them, or they are not known
        ([{"row_groups": (0.1, 0.1)}], (1.0, 0.5), 1.0, 0.5),
        ([{}], (1.0, 0.5), 1.0, 0.5),
        ([{"shares": (0.0, 0.0), "row_groups": (0.0, 0.5)}], (1.0, 0.5), 0.5, 0.5),
        # of 0.2 that are read in files: 0.1 outside, 0.1 -> 0.05 inside
        ([{"row_groups": (1.0, 0.5), "rows": 10}], (0.2, 0.1), 0.1, 0.25),
        # filters on the whole table read less of these files than those on their rows alone
        ([{"shares": (0.8, 0.8), "row_groups": (0.8, 0.4)}], (0.4, 0.4), 0.2, 0.25),
    ],
)
def test_what_rewrites_save_is_counted_as_it_is_judged(effects, shares, inside, gain):
    """By row group where these change; what filters read elsewhere in the table is counted, too."""
    found = compute_gain([effect(**each) for each in effects], *shares, inside)

    assert found == pytest.approx(gain)
