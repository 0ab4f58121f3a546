"""The recipes for a container, Kubernetes and GitHub, as far as they run without these.

The lines of the Dockerfile run in a folder and a virtual environment, and the container's arguments
there, on an S3 server, without a way to Maven. Not run are the base image, the user of the
image, and what Kubernetes and GitHub add.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import yaml

from tests.kit.checkout import ROOT
from tests.kit.documents import code

DOCUMENT = "zadapter/docs/how-to/containers.md"
SOURCES = ("pyproject.toml", "README.md", "zadapter", "backends")
NOWHERE = "http://127.0.0.1:9"
"""A proxy that does not answer."""
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
OFFLINE = dict.fromkeys(PROXIES, NOWHERE) | {"NO_PROXY": "127.0.0.1,localhost"}
EXCEEDED = 3


def copy(sources, target):
    """Copy files and folders of this checkout: a file into a folder, a folder as a folder."""
    target.parent.mkdir(parents=True, exist_ok=True)
    for name in sources:
        source = ROOT / name
        if source.is_dir():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(source, target, dirs_exist_ok=True, ignore=ignored)
        else:
            target.mkdir(exist_ok=True)
            shutil.copy(source, target)


class Container:
    """What the Dockerfile makes, in a folder that stands for the root of the image."""

    def __init__(self, root):
        self.root, self.folder = root, "/"
        self.bin, home = root / "venv" / "bin", root / "home" / "zadapter"
        self.variables = {"PATH": f"{self.bin}:/usr/bin:/bin", "HOME": str(home)}
        home.mkdir(parents=True)
        subprocess.run([sys.executable, "-m", "venv", self.bin.parent], check=True)

    def inside(self, text):
        """Return a text whose paths of the image are those of the folder."""
        return re.sub(r"(?<![\w.])/(src|etc|home)\b", rf"{self.root}/\1", text)

    def build(self):
        """Follow the instructions."""
        lines = code(DOCUMENT, "Container", "dockerfile").replace("\\\n", " ").splitlines()
        for line in lines:
            instruction, _, rest = line.partition(" ")
            if instruction == "COPY":
                *sources, target = rest.split()
                copy(sources, Path(self.inside(target)))
            elif instruction == "WORKDIR":
                self.folder = self.inside(rest)
            elif instruction == "ENV":
                self.variables |= dict([rest.split("=")])
            elif instruction == "RUN" and not rest.startswith("useradd "):
                self.call(["/bin/sh", "-c", self.inside(rest)])

    def call(self, command, variables=None):
        """Run a command as the image would."""
        environment = self.variables | (variables or {})
        subprocess.run(command, check=True, env=environment, cwd=self.folder)


def kubernetes(environments, variables):
    """Run the job's arguments with the file of the ConfigMap.

    Args:
        environments: A folder for the container's.
        variables: Where the S3 server is, and its key.
    """
    root = environments / "container"
    shutil.rmtree(root, ignore_errors=True)
    container = Container(root)
    container.build()
    documents = yaml.safe_load_all(code(DOCUMENT, "Kubernetes", "yaml"))
    objects = {document["kind"]: document for document in documents}
    pod = objects["CronJob"]["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    (job,) = pod["containers"]
    (place,) = (each["mountPath"] for each in job["volumeMounts"] if each["name"] == "lake")
    mount = Path(container.inside(place))
    mount.mkdir(parents=True)
    for name, text in objects["ConfigMap"]["data"].items():
        (mount / name).write_text(text)
    arguments = [container.inside(argument) for argument in job["args"]]
    container.call([container.bin / "zadapter", *arguments], OFFLINE | variables)


class Workflow:
    """The job of the workflow, in a copy of this checkout."""

    def __init__(self, folder, python, variables):
        self.folder = folder
        for name in SOURCES:
            copy([name], folder / name if (ROOT / name).is_dir() else folder)
        (job,) = yaml.safe_load(code(DOCUMENT, "GitHub Actions", "yaml"))["jobs"].values()
        self.scripts = [step["run"] for step in job["steps"] if "run" in step]
        self.table = job["strategy"]["matrix"]["table"][0]
        path = f"{python.parent}:{os.environ['PATH']}"
        self.variables = os.environ | variables | {"PATH": path, "TABLE": self.table}

    def run(self, scripts=None):
        """Run steps as GitHub does, up to the first that fails, and return its exit code."""
        for script in scripts or self.scripts:
            command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
            ended = subprocess.run(command, check=False, env=self.variables, cwd=self.folder)
            if ended.returncode:
                return ended.returncode
        return 0


def github(folder, python, variables, append):
    """Check a table that was just clustered, and again after appends in order of arrival."""
    workflow = Workflow(folder, python, variables)
    assert workflow.run(workflow.scripts[:-1]) == 0
    cluster = 'zadapter optimize "$TABLE" --by event_time,user_id --target-file-size 32KB --quiet'
    assert workflow.run([cluster]) == 0
    assert workflow.run(workflow.scripts[-1:]) == 0
    append(workflow.table)
    assert workflow.run(workflow.scripts[-1:]) == EXCEEDED
