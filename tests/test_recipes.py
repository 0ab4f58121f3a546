"""Recipes for other programs fit what these programs read; ``integration/recipes`` runs them.

A linter stands for each program that is not here: Docker, Kubernetes, GitHub.
"""

import subprocess
import sys
from pathlib import Path

import kubernetes_validate
import pytest
import tomli
import yaml

from tests.kit.checkout import ROOT
from tests.kit.documents import code
from tests.test_documents import accepts
from zadapter.lake.settings import parse

RECIPES = "zadapter/docs/how-to/containers.md"
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def lint(*command):
    """Run a program of this environment, and return what it complains about."""
    program = Path(sys.executable).with_name(command[0])
    ended = subprocess.run([program, *command[1:]], capture_output=True, text=True, check=False)
    return "" if ended.returncode == 0 else ended.stdout + ended.stderr


@pytest.fixture
def workflow(tmp_path):
    """The workflow of the recipe as a file."""
    file = tmp_path / ".github" / "workflows" / "layout.yml"
    file.parent.mkdir(parents=True)
    file.write_text(code(RECIPES, "GitHub Actions", "yaml"))
    return file


def manifests():
    """The objects of the recipe for Kubernetes, by kind."""
    documents = yaml.safe_load_all(code(RECIPES, "Kubernetes", "yaml"))
    return {document["kind"]: document for document in documents}


def container():
    """The container of the recipe for Kubernetes."""
    job = manifests()["CronJob"]["spec"]["jobTemplate"]["spec"]
    return job["template"]["spec"]["containers"][0]


def test_the_container_file_is_one(tmp_path):
    """Its instructions, and the shell in them."""
    file = tmp_path / "Dockerfile"
    file.write_text(code(RECIPES, "Container", "dockerfile"))

    assert lint("hadolint", "--failure-threshold", "style", file) == ""


def test_kubernetes_knows_every_field():
    """A field that it does not know is ignored without a word, unless a client asks."""
    for manifest in manifests().values():
        kubernetes_validate.validate(manifest, kubernetes_validate.latest_version(), strict=True)


def test_the_job_calls_zadapter_as_it_can_be_called():
    """With the options that there are, and a file of a lake without mistakes."""
    (name, text), *others = manifests()["ConfigMap"]["data"].items()
    mounts = {each["name"]: each["mountPath"] for each in container()["volumeMounts"]}

    assert parse(tomli.loads(text), name).budget.bytes == 2 << 40
    assert not others
    assert accepts(container()["args"])
    assert f"{mounts['lake']}/{name}" in container()["args"]


def test_workflows_are_valid_and_safe(workflow):
    """Those of this repository, too: their fields, tokens, and texts that reach a shell."""
    files = [*WORKFLOWS, workflow]
    config = ROOT / ".github" / "zizmor.yml"

    assert lint("check-jsonschema", "--builtin-schema", "vendor.github-workflows", *files) == ""
    assert lint("zizmor", "--offline", "--no-progress", "--config", config, *files) == ""
