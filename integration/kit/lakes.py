"""Shared helpers for tests on tables of every format."""

from contextlib import contextmanager

import zadapter


class Lake:
    """Tables of one format; a subclass defines how to ``load`` one without zadapter."""

    def __init__(self, spark):
        self.spark = spark

    def sql(self, text):
        return self.spark.sql(text)

    def rows(self, table):
        """Return all rows by Spark, as sorted strings."""
        return sorted(map(str, self.load(table).collect()))

    def optimize(self, table, **arguments):
        """Optimize by column a, into several small files."""
        asked = {"by": ["a"], "target_file_size": "2KB", "spark": self.spark} | arguments
        return zadapter.optimize(table, **asked)

    def plan(self, table, **arguments):
        """Plan on this session."""
        return zadapter.plan(table, **{"by": ["a"], "spark": self.spark} | arguments)


@contextmanager
def settings(spark, values):
    """Change settings of the session temporarily."""
    before = {key: spark.conf.get(key, None) for key in values}
    for key, value in values.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, value in before.items():
            spark.conf.unset(key) if value is None else spark.conf.set(key, value)


def interrupted(backend, *actions):
    """Return a backend that runs one of *actions*, in order, before each commit of staged files."""
    waiting = list(actions)

    class Interrupted(backend):
        def commit(self, rewrite):
            if waiting:
                waiting.pop(0)()
            return super().commit(rewrite)

    return Interrupted
