"""Tables of every format on S3: clustered by either scheme, and what may go wrong there."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import zadapter
from integration.kit.lakes import settings
from integration.kit.s3 import KEY, SECRET, make
from tests.kit.variants import slow
from zadapter import errors

PAGE = Path(__file__).parents[1] / "zadapter" / "docs" / "how-to" / "s3.md"
CLUSTERED = {"by": ["a", "b"], "target_file_size": "2KB"}
SCHEMES = pytest.mark.parametrize("scheme", ["s3", *slow("s3a")])


class Stories:
    """What holds for each format."""

    def optimize(self, table, spark, **arguments):
        asked = {**CLUSTERED, "backend": self.format, "spark": spark, **arguments}
        return zadapter.optimize(table, **asked)

    def made(self, spark, s3, bucket="lake"):
        return make(spark, s3, self.format, bucket)

    def read(self, s3, table):
        return s3.rows(self.format, table)

    @pytest.mark.slow
    @pytest.mark.every_format
    @SCHEMES
    def test_a_table_is_clustered(self, spark, s3, scheme):
        """Predicted, rewritten, found clustered, and read by others."""
        table = self.made(spark, s3).replace("s3a:", f"{scheme}:")
        plan = zadapter.plan(table, **CLUSTERED, backend=self.format, spark=spark)

        report = self.optimize(table, spark)

        assert report.share_after == pytest.approx(plan.share_after, abs=0.05)
        assert report.share_after < 0.7
        assert self.read(s3, table) == 2_000
        assert self.optimize(table, spark).nothing_to_do
        assert zadapter.read(table, where="a < 30", spark=spark).count() == 30
        few = zadapter.files(table, where="a < 30", spark=spark)["path"].to_pylist()
        assert 0 < len(few) < zadapter.files(table, spark=spark).num_rows / 2
        assert all(path.startswith("s3://lake/") for path in few)

    def test_a_session_knows_s3a_alone(self, spark, s3):
        """Hadoop has no class for ``s3://`` out of the box."""
        table = self.made(spark, s3).replace("s3a:", "s3:")
        with settings(spark, {"fs.s3.impl": "none.at.All"}):
            self.optimize(table, spark)
            rows = zadapter.read(table, spark=spark)

        assert rows.count() == 2_000

    @pytest.mark.slow
    def test_credentials_are_temporary(self, spark, s3):
        """A key that is of use with its token only, by settings of the bucket."""
        table = self.made(spark, s3, "temporary")

        assert not self.optimize(table, spark).nothing_to_do

    @pytest.mark.parametrize("bucket", ["strangers", "nobody"])
    def test_a_key_is_unknown_or_missing(self, spark, s3, bucket):
        with pytest.raises(
            errors.StoreError, match=rf"s3a://{bucket}.*(check the|set AWS_ACCESS_KEY_ID)"
        ):
            self.optimize(f"s3a://{bucket}/t", spark)

    def test_there_is_no_such_bucket(self, spark):
        with pytest.raises(errors.UnknownTableError, match=r"s3a://nowhere/t.*bucket not found"):
            self.optimize("s3a://nowhere/t", spark)

    @pytest.mark.slow
    def test_a_key_may_read_only(self, spark, s3):
        """It can plan and read; what it writes is refused, and nothing of it is left."""
        table = self.made(spark, s3, "readers")
        before = s3.keys("", "readers")
        assert zadapter.plan(table, **CLUSTERED, backend=self.format, spark=spark).files_rewritten

        with pytest.raises(errors.StoreError, match=r"s3a://readers.*check the"):
            self.optimize(table, spark)

        assert s3.keys("", "readers") == before

    @pytest.mark.slow
    def test_requests_are_estimated(self, spark, s3):
        """In a plan and in a report; the server counts as S3 bills."""
        table = self.made(spark, s3, "gated")
        with s3.gate.opened():
            plan = zadapter.plan(table, **CLUSTERED, backend=self.format, spark=spark)
            before = s3.gate.billed.copy()
            report = self.optimize(table, spark, price={"put": 1000})
            billed = s3.gate.billed - before

        assert report.price == report.cost.put_requests
        for cost in (plan.cost, report.cost):
            assert 0.5 < cost.get_requests / billed["get"] < 2
            assert 0.5 < cost.put_requests / billed["put"] < 2

    @pytest.mark.slow
    def test_the_connection_is_lost(self, spark, s3):
        """When no answer comes any more, the table is one version or the other."""
        table = self.made(spark, s3, "gated")
        with s3.gate.cutting(10**9):
            self.optimize(table, spark)
        writes = s3.gate.writes
        with (
            s3.gate.cutting(writes // 2),
            pytest.raises((errors.StoreError, errors.UnknownOutcomeError)),
        ):
            self.optimize(table, spark, force=True)
        assert self.read(s3, table) == 2_000

        self.optimize(table, spark, force=True)
        assert self.read(s3, table) == zadapter.read(table, spark=spark).count() == 2_000


def alone(command, variables):
    """Run a command with these variables and no others of AWS; return all that it says."""
    others = {key: value for key, value in os.environ.items() if not key.startswith("AWS_")}
    answer = subprocess.run(
        command, env=others | variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, check=False,
    )  # fmt: skip
    assert answer.returncode == 0, answer.stdout
    return answer.stdout


class TestDelta(Stories):
    """Read by delta-rs."""

    format = "delta"

    @pytest.mark.slow
    def test_a_profile_has_the_key(self, spark, s3, tmp_path):
        """On the command line, whose session has S3A since the path is on S3."""
        table = self.made(spark, s3, "gated").replace("s3a:", "s3:")
        profile = f"[lake]\naws_access_key_id = {KEY}\naws_secret_access_key = {SECRET}\n"
        (tmp_path / "credentials").write_text(profile)

        alone(["zadapter", "optimize", table, "--by", "a,b", "--target-file-size", "2KB"], {
            "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "credentials"), "AWS_PROFILE": "lake",
            "AWS_ENDPOINT_URL": s3.gate.uri,
        })  # fmt: skip

        assert self.optimize(table, spark).nothing_to_do
        assert self.read(s3, table) == 2_000


class TestIceberg(Stories):
    """Read by pyiceberg."""

    format = "iceberg"


class TestParquet(Stories):
    """Read by pyarrow, from the files that zadapter names."""

    format = "parquet"

    def test_nothing_is_prepared(self, spark, s3):
        """The documented way: keys and the server in the environment, and one call."""
        table = self.made(spark, s3, "gated").replace("s3a:", "s3:")
        code = f"import zadapter; print(zadapter.optimize({table!r}, by='a', backend='parquet'))"

        values = {
            "AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_ENDPOINT_URL": s3.gate.uri,
        }  # fmt: skip
        named = re.findall(r"^export (\w+)=", PAGE.read_text(), re.MULTILINE)

        said = alone([sys.executable, "-c", code], {name: values[name] for name in named})

        assert "4 -> 2" in said
        assert zadapter.history(table, spark=spark)[0].operation == "optimize"
