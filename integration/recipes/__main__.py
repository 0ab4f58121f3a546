"""Run the recipes of ``zadapter/docs/how-to`` as they stand: ``python -m integration.recipes``.

Each recipe runs in a virtual environment of its own, in a temporary folder with a Delta table that
delta-rs has made. Its rows are compared before and after, and its log must have a rewrite. Recipes
that show several ways run once for each.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import deltalake
import pyarrow as pa

from integration.kit import s3 as servers
from integration.recipes.dbt_project import dbt
from integration.recipes.deployment import github, kubernetes
from tests.kit.checkout import ROOT
from tests.kit.documents import code

SCHEDULERS = "zadapter/docs/how-to/schedulers.md"
PACKAGES = {
    "cron": [],
    "maintain": [],
    "Airflow": ["apache-airflow==3.3.2"],
    "Dagster": ["dagster==1.13.29"],
    "dbt": ["dbt-core==1.11.16", "dbt-spark[PyHive]==1.11.0"],
    "Kubernetes": [],
    "GitHub Actions": [],
}
BLOCKS = {"Airflow": 2, "Dagster": 2, "dbt": 3}
"""How often a recipe runs: once for each way that it shows."""
ON_S3 = ("Kubernetes", "GitHub Actions")
EVENTS = "s3://lake/sales/events"
"""The table of the recipes on S3."""
ROWS = 100_000
LAKE = """
[journal]
table = "journal"

[[tables]]
match = "lake/*"
by = ["event_time", "user_id"]
"""
"""The file of the recipes for many tables."""
DAG_TEST = "\nif __name__ == '__main__':\n    assert {}.test().state == 'success'\n"
MATERIALIZE = """
from dagster import materialize

if __name__ == "__main__":
    result = materialize([{}])
    assert result.success
    assert [each.passed for each in result.get_asset_check_evaluations()] == {}
    (event,) = result.get_asset_materialization_events()
    print(event.materialization.metadata["{}"].text)
"""


def python_of(recipe, environments):
    """Return the Python of the recipe's environment, which is made if it is not there."""
    python = environments / recipe.split()[0].lower() / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", python.parents[1]], check=True)
    # Airflow's environment needs no zadapter: a task runs in another one
    own = [] if recipe == "Airflow" else [f"{ROOT}[delta,java]"]
    if PACKAGES[recipe] or own:
        subprocess.run([python, "-m", "pip", "install", "-q", *PACKAGES[recipe], *own], check=True)
    return python


def by_cron(recipe, python):
    """Return the crontab's command as cron runs it: by ``sh``, with few variables."""
    _, _, line = code(SCHEDULERS, recipe, "text").strip().partition("cd /data && ")
    path = f"{python.parent}:/usr/bin:/bin"
    environment = {"PATH": path, "HOME": os.environ["HOME"]}
    return ["/bin/sh", "-c", line], environment


def airflow(folder, python, zadapter, number):
    """Run the DAG by ``dag.test()``, on a database of its own."""
    (folder / "dags").mkdir()
    dag = folder / "dags" / "events.py"
    name = ("clustered", "maintained")[number]
    dag.write_text(code(SCHEDULERS, "Airflow", "python", number) + DAG_TEST.format(name))
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


def dagster(folder, python, number):
    """Materialise the asset, and print one of its facts; its check passes."""
    script = folder / "assets.py"
    of_table = ("clustered_events, no_rewrite_is_due", [True], "data scanned")
    names = (of_table, ("maintained_lake", [], "tables"))[number]
    script.write_text(code(SCHEDULERS, "Dagster", "python", number) + MATERIALIZE.format(*names))
    return [python, script], os.environ


def make(table, storage=None):
    """Make the table that most recipes name, or append the same rows to it."""
    moments = pa.array([1_750_000_000 + i * 7919 % 100_003 for i in range(ROWS)], pa.timestamp("s"))
    users = [i * 31_337 % 9_973 for i in range(ROWS)]
    rows = pa.table({
        "event_time": moments.cast(pa.timestamp("us", "UTC")), "user_id": users, "id": range(ROWS),
    })  # fmt: skip
    for start in range(0, ROWS, ROWS // 4):
        part = rows.slice(start, ROWS // 4)
        deltalake.write_deltalake(table, part, mode="append", storage_options=storage)


def check(recipe, table, storage=None, copies=1):
    """Compare the rows of a table with those that were written, and look for a rewrite."""
    found = deltalake.DeltaTable(table, storage_options=storage)
    operations = [entry["operation"] for entry in found.history()]
    ids = sorted(found.to_pyarrow_table()["id"].to_pylist())
    if ids != sorted([*range(ROWS)] * copies) or "OPTIMIZE" not in operations:
        raise AssertionError((recipe, len(ids), operations))
    print(f"{recipe}: {len(ids)} rows, {operations}")


def run(recipe, environments, number):
    """Run a block of a recipe in an empty folder, and check the table."""
    python = python_of(recipe, environments)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "lake.toml").write_text(LAKE)
        if recipe == "Airflow":
            command, variables = airflow(folder, python, python_of("cron", environments), number)
        elif recipe in BLOCKS:
            start = {"Dagster": dagster, "dbt": dbt}[recipe]
            command, variables = start(folder, python, number)
        else:
            command, variables = by_cron(recipe, python)
        table = str(folder / "spark-warehouse" / "events")
        if recipe != "dbt":
            table = str(folder / "lake" / "events")
            make(table)
        subprocess.run(command, check=True, env=variables, cwd=folder)
        check(recipe, table)


def run_on_s3(recipe, environments):
    """Run a recipe whose table is on S3, on a server of its own."""
    with servers.running() as server, tempfile.TemporaryDirectory() as folder:
        variables = {
            "AWS_ENDPOINT_URL": server.uri, "AWS_REGION": servers.REGION,
            "AWS_ACCESS_KEY_ID": servers.KEY, "AWS_SECRET_ACCESS_KEY": servers.SECRET,
        }  # fmt: skip
        storage = variables | {"AWS_ALLOW_HTTP": "true"}
        make(EVENTS, storage)
        if recipe == "Kubernetes":
            kubernetes(environments, variables)
            check(recipe, EVENTS, storage)
        else:
            python = python_of(recipe, environments)
            github(Path(folder), python, variables, lambda table: make(table, storage))
            check(recipe, EVENTS, storage, copies=2)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("recipe", nargs="*", default=[*PACKAGES], help="of " + ", ".join(PACKAGES))
    parser.add_argument("--environments", type=Path, default=Path(".venv", "recipes"))
    chosen = parser.parse_args()
    environments = chosen.environments.resolve()
    for recipe in chosen.recipe:
        if recipe in ON_S3:
            run_on_s3(recipe, environments)
        else:
            for number in range(BLOCKS.get(recipe, 1)):
                run(recipe, environments, number)


if __name__ == "__main__":
    main()
