"""Run the recipes of ``zadapter/RECIPES.md`` as they stand: ``python -m integration.recipes``.

Each recipe runs in a virtual environment of its own, in a temporary folder with a Delta table that
delta-rs has made. Its rows are compared before and after, and its log must have a rewrite.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import deltalake
import pyarrow as pa

from tests.kit.checkout import ROOT
from tests.kit.documents import read

DOCUMENT = "zadapter/RECIPES.md"
PACKAGES = {
    "cron": [],
    "maintain": [],
    "Airflow": ["apache-airflow==3.3.2"],
    "Dagster": ["dagster==1.13.29"],
    "dbt": ["dbt-core==1.10.23", "dbt-spark==1.11.0"],
}
ROWS = 100_000
LAKE = """
[journal]
table = "journal"

[[tables]]
match = "lake/*"
by = ["event_time", "user_id"]
"""
"""The file of the recipe for many tables."""
DAG_TEST = "\nif __name__ == '__main__':\n    assert clustered.test().state == 'success'\n"
MATERIALIZE = """
from dagster import materialize

if __name__ == "__main__":
    result = materialize([clustered_events])
    assert result.success
    (event,) = result.get_asset_materialization_events()
    print(event.materialization.metadata["data scanned"].text)
"""
PROJECT = """
name: lake
version: "1.0"
profile: lake
"""
PROFILE = """
lake:
  target: session
  outputs:
    session: {type: spark, method: session, host: none, schema: default}
"""


def code(recipe, language="python"):
    """Return the first block of a recipe in *language*."""
    section = read(DOCUMENT).partition(f"\n## {recipe}\n")[2].partition("\n## ")[0]
    return section.partition(f"```{language}")[2].partition("\n")[2].partition("```")[0]


def python_of(recipe, environments):
    """Return the Python of the recipe's environment, which is made if it is not there."""
    python = environments / recipe.lower() / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", python.parents[1]], check=True)
    # Airflow's environment needs no zadapter: a task runs in another one
    own = [] if recipe == "Airflow" else [f"{ROOT}[delta,java]"]
    if PACKAGES[recipe] or own:
        subprocess.run([python, "-m", "pip", "install", "-q", *PACKAGES[recipe], *own], check=True)
    return python


def cron(folder, python):
    """Run the crontab's command as cron does: by ``sh``, with an almost empty environment."""
    return by_cron("cron", python)


def maintain(folder, python):
    """Run the crontab's command for all tables of a lake."""
    (folder / "lake.toml").write_text(LAKE)
    return by_cron("maintain", python)


def by_cron(recipe, python):
    """Return the command of a recipe's crontab, and the variables that cron sets."""
    _, _, line = code(recipe, "text").strip().partition("cd /data && ")
    path = f"{python.parent}:/usr/bin:/bin"
    environment = {"PATH": path, "HOME": os.environ["HOME"]}
    return ["/bin/sh", "-c", line], environment


def airflow(folder, python, zadapter):
    """Run the DAG by ``dag.test()``, on a database of its own."""
    (folder / "dags").mkdir()
    dag = folder / "dags" / "events.py"
    dag.write_text(code("Airflow") + DAG_TEST)
    environment = os.environ | {
        "AIRFLOW_HOME": str(folder / "airflow"),
        "AIRFLOW__CORE__DAGS_FOLDER": str(dag.parent),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "false",
        "ZADAPTER_PYTHON": str(zadapter),
    }
    program = python.with_name("airflow")
    subprocess.run([program, "db", "migrate"], check=True, env=environment, cwd=folder)
    subprocess.run([program, "dags", "reserialize"], check=True, env=environment, cwd=folder)
    return [python, dag], environment


def dagster(folder, python):
    """Materialise the asset."""
    script = folder / "assets.py"
    script.write_text(code("Dagster") + MATERIALIZE)
    return [python, script], os.environ


def dbt(folder, python):
    """Build a project of one model; its table is in the session's warehouse."""
    (folder / "models").mkdir()
    (folder / "models" / "events.sql").write_text(code("dbt", "sql"))
    (folder / "dbt_project.yml").write_text(PROJECT)
    (folder / "profiles.yml").write_text(PROFILE)
    script = folder / "build.py"
    script.write_text(code("dbt"))
    return [python, script], os.environ | {"DO_NOT_TRACK": "1"}


def make(folder):
    """Make the table that most recipes name."""
    moments = pa.array([1_750_000_000 + i * 7919 % 100_003 for i in range(ROWS)], pa.timestamp("s"))
    users = [i * 31_337 % 9_973 for i in range(ROWS)]
    rows = pa.table({
        "event_time": moments.cast(pa.timestamp("us", "UTC")), "user_id": users, "id": range(ROWS),
    })  # fmt: skip
    for start in range(0, ROWS, ROWS // 4):
        deltalake.write_deltalake(folder, rows.slice(start, ROWS // 4), mode="append")


def ids(table):
    """Return the sorted ids of a table's rows, and the operations of its log."""
    found = deltalake.DeltaTable(table)
    operations = [entry["operation"] for entry in found.history()]
    return sorted(found.to_pyarrow_table()["id"].to_pylist()), operations


def run(recipe, environments):
    """Run one recipe in an empty folder, and check the table."""
    python = python_of(recipe, environments)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if recipe == "Airflow":
            command, variables = airflow(folder, python, python_of("cron", environments))
        else:
            start = {"cron": cron, "maintain": maintain, "Dagster": dagster, "dbt": dbt}[recipe]
            command, variables = start(folder, python)
        table = str(folder / "spark-warehouse" / "events")
        if recipe != "dbt":
            table = str(folder / "lake" / "events")
            make(table)
        subprocess.run(command, check=True, env=variables, cwd=folder)
        found, operations = ids(table)
    if found != list(range(ROWS)) or "OPTIMIZE" not in operations:
        raise AssertionError((recipe, len(found), operations))
    print(f"{recipe}: {len(found)} rows, {operations}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("recipe", nargs="*", default=[*PACKAGES], help="of " + ", ".join(PACKAGES))
    parser.add_argument("--environments", type=Path, default=Path(".venv", "recipes"))
    chosen = parser.parse_args()
    for recipe in chosen.recipe:
        run(recipe, chosen.environments.resolve())


if __name__ == "__main__":
    main()
