"""A user with zadapter installed: new processes in an empty folder, and nothing prepared."""

import os
import subprocess
import sys

import pytest

from integration.kit.standalone import cluster
from tests.kit.checkout import python_path

SET_BY_OTHERS = ("AWS_", "PYSPARK_", "PYTEST_", "SPARK_")


class User:
    """A person in an empty folder, whose machine has no settings of Spark and of S3."""

    def __init__(self, folder):
        self.folder = folder

    def environment(self, **variables):
        """Return the variables of a new process, which imports this checkout."""
        bare = {
            key: value for key, value in os.environ.items() if not key.startswith(SET_BY_OTHERS)
        }
        return {**bare, "PYTHONPATH": python_path(), **variables}

    def call(self, *command, **variables):
        """Run a program to its end."""
        return subprocess.run(
            command, cwd=self.folder, env=self.environment(**variables), capture_output=True,
            text=True, check=False,
        )  # fmt: skip

    def python(self, code, *arguments, **variables):
        """Run a script in a new process, and return what it prints."""
        script = self.folder / "script.py"
        script.write_text(code, encoding="utf-8")
        answer = self.call(sys.executable, str(script), *map(str, arguments), **variables)
        assert answer.returncode == 0, answer.stderr[-5_000:]
        return answer.stdout


@pytest.fixture
def user(tmp_path):
    """A user in an empty folder."""
    return User(tmp_path)


@pytest.fixture
def workers(user, tmp_path_factory):
    """The address of a cluster of two workers, and the workers."""
    folder = tmp_path_factory.mktemp("cluster")
    bare = user.environment()
    del bare["PYTHONPATH"]
    with cluster(folder, bare, cores=(1, 1)) as found:
        yield found
