"""Table features, as a protocol states them (PROTOCOL.md, "Table Features").

A feature may require something of every writer that zadapter does not do, so only tested features
pass. The README names the test of each.
"""

from collections.abc import Mapping
from typing import Any

TESTED = frozenset(
    {
        "allowColumnDefaults",
        "appendOnly",
        "changeDataFeed",
        "checkConstraints",
        "checkpointProtection",
        "clustering",
        "columnMapping",
        "deletionVectors",
        "domainMetadata",
        "generatedColumns",
        "icebergCompatV1",
        "icebergCompatV2",
        "icebergCompatV3",
        "identityColumns",
        "inCommitTimestamp",
        "invariants",
        "materializePartitionColumns",
        "rowTracking",
        "timestampNtz",
        "typeWidening",
        "typeWidening-preview",
        "v2Checkpoint",
        "vacuumProtocolCheck",
        "variantShredding",
        "variantShredding-preview",
        "variantType",
        "variantType-preview",
    }
)
"""Features that zadapter has been tested with."""

CATALOG_MANAGED = frozenset({"catalogManaged", "catalogOwned", "catalogOwned-preview"})
"""Features of tables whose commits are the catalog's."""

REDIRECT = "delta.redirect"
"""What the names of properties start with that send readers or writers to another table."""

_LEGACY = {
    "appendOnly": (1, 2),
    "invariants": (1, 2),
    "checkConstraints": (1, 3),
    "changeDataFeed": (1, 4),
    "generatedColumns": (1, 4),
    "columnMapping": (2, 5),
    "identityColumns": (1, 6),
}
"""The least reader and writer version that implies a feature, in protocols that list none."""
_LISTS_FEATURES = 7
"""The writer version whose protocols list all their features."""


def features(protocol: Mapping[str, Any]) -> frozenset[str]:
    """Return the features of a protocol: those that it lists, or that its versions imply."""
    listed = {*(protocol.get("writerFeatures") or ()), *(protocol.get("readerFeatures") or ())}
    reader, writer = protocol["minReaderVersion"], protocol["minWriterVersion"]
    if writer < _LISTS_FEATURES:
        listed |= {name for name, (r, w) in _LEGACY.items() if reader >= r and writer >= w}
    return frozenset(listed)


def find_untested(protocol: Mapping[str, Any]) -> list[str]:
    """Return the features of a protocol that zadapter has not been tested with, sorted."""
    return sorted(features(protocol) - TESTED)
