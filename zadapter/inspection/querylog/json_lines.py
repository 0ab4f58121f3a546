"""Logs that are lines of JSON: Spark's event logs, Iceberg's scan reports, rows of a table.

Of an event log, the starts of SQL executions count. Their description is the text of the query in
Spark's own shell and its Thrift server; elsewhere it names a line of code, and the filters come
from the plan. Without the numbers of attributes, equal queries have equal scans.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

_EVENT = "SparkListenerSQLExecutionStart"
_FIELDS = """Event string, description string, physicalPlanDescription string, time double,
`table-name` string, `filter` string"""
_STATEMENT = r"(?is)^[\s(]*(select|with|from|table|values|insert|create|delete|update|merge)\s.+"
_SCAN = r"^\s*\(\d+\) (?:Batch)?Scan"
_TABLE = rf"{_SCAN}(?: parquet| orc)? *(\S*)"
_PARTS = {
    # lines of the form "name: value" follow the heading
    "location": r"(?m)^Location: \S+ \[([^\],]*)",
    "partition": r"(?m)^PartitionFilters: (.*)$",
    "pushed": r"(?m)^PushedFilters: (.*)$",
    "described": r"(?m)\bfilters=(.*?)(?:, (?:runtimeFilters|groupedBy|pushedLimit)=|\]$|\)$)",
}
_MILLISECONDS = 1_000
_NUMBERS = r"#\d+L?"
_MOST_KEYS = 1_000


def entries_of_lines(lines: DataFrame, name: str) -> DataFrame:
    """Return the entries of a log, in the form of ``zadapter.inspection.querylog.entries``.

    Args:
        lines: Lines of text; what stands before the JSON is ignored.
        name: Last part of the table's name. Scans of tables and locations without it are left out.
    """
    value = F.col("value")
    has_report = value.contains('"table-name"') & value.contains('"filter"')
    parsed = lines.where(value.contains(_EVENT) | has_report).select(
        F.from_json(F.expr("substring(value, instr(value, '{'))"), _FIELDS).alias("j")
    )
    is_report = F.col("j.`table-name`").isNotNull()
    own = F.coalesce("j.description", F.lit("")).startswith("zadapter: ")  # no query of a user
    is_event = F.col("j.Event").endswith(_EVENT) & ~own
    return parsed.where(is_report | is_event).select(
        F.when(is_report, "").otherwise(_describe_execution()).alias("text"),
        F.when(is_report, F.array(_report())).otherwise(_scans(name)).alias("scans"),
        F.lit(1.0).alias("weight"),
        F.col("j.time").alias("moment"),
        (F.col("j.time") / _MILLISECONDS).alias("second"),
    )


def rows_of_lines(lines: DataFrame) -> DataFrame | None:
    """Return lines that are rows of a table, whose columns are texts as those of a CSV file.

    Args:
        lines: Lines of text. A line that is no object of JSON is a row of nulls.

    Returns:
        The rows, without events of Spark and reports of Iceberg. None: no line is an object.
    """
    value = F.from_json(F.trim("value"), "map<string,string>")
    objects = lines.where(F.trim("value") != "").select(value.alias("j"))
    others = objects.where("j IS NULL OR (j['Event'] IS NULL AND j['table-name'] IS NULL)")
    keys = others.select(F.explode(F.map_keys("j"))).distinct().limit(_MOST_KEYS).collect()
    names = sorted(row[0] for row in keys)
    return others.select(*(F.col("j")[name].alias(name) for name in names)) if names else None


def _describe_execution() -> Column:
    """Return the description of an execution if it may be SQL."""
    trimmed = F.trim("j.description")
    return F.when(trimmed.rlike(_STATEMENT), trimmed).otherwise("")


def _report() -> Column:
    return F.struct(
        F.col("j.`table-name`").alias("table"),
        *(F.lit("").alias(field) for field in _PARTS),
        F.coalesce("j.filter", F.lit("true")).alias("expression"),
    )


def _scans(name: str) -> Column:
    """Return the scans of a plan, from the sections of its description."""
    sections = F.split(F.coalesce("j.physicalPlanDescription", F.lit("")), "\n\n")
    return F.transform(
        F.filter(
            sections,
            lambda section: (
                section.rlike(_SCAN)
                & F.lower(section).contains(name.lower())
                & ~section.contains("/_delta_log")
            ),
        ),
        lambda section: F.struct(
            F.regexp_extract(section, _TABLE, 1).alias("table"),
            *(
                F.regexp_replace(F.regexp_extract(section, pattern, 1), _NUMBERS, "#").alias(field)
                if field == "partition"
                else F.regexp_extract(section, pattern, 1).alias(field)
                for field, pattern in _PARTS.items()
            ),
            F.lit("").alias("expression"),
        ),
    )
