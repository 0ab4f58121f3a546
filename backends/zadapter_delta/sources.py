"""What a Delta table was migrated from: a property names the table, a ``txn`` action the version.

The property is there to spare all other tables a look into the log's state.  A ``txn`` action is
how the protocol has applications write exactly once ("Transaction Identifiers").
"""

from zadapter.table import Source
from zadapter_delta.jvm import JavaObject, Jvm

PROPERTY = "zadapter.source"


def text(source: Source) -> str:
    """Return what names the other table, its version aside."""
    return f"{source.format}:{source.id}"


def application(source: Source) -> str:
    """Return the ``appId`` of those who carry its rows."""
    return f"{PROPERTY}:{text(source)}"


def source(jvm: Jvm, snapshot: JavaObject) -> Source | None:
    """Return what a table was migrated from, and up to which version."""
    said = jvm.dict(snapshot.metadata().configuration()).get(PROPERTY)
    if said is None:
        return None
    format_, _, table = said.partition(":")
    known = Source(format=format_, id=table, version=0)
    versions = {
        str(each.appId()): each.version() for each in jvm.iterate(snapshot.setTransactions())
    }
    version = versions.get(application(known))
    return None if version is None else Source(format=format_, id=table, version=int(version))
