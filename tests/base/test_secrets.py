"""Secrets do not reach a screen, a log or a report."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zadapter.base.secrets import MASK, mask_secrets
from zadapter.errors import UnknownOutcomeError, UsageError
from zadapter.report.plan import Plan

CONSTANTS = {
    "format": "delta",
    "version": 1,
    "columns": ("a",),
    "curve": "adaptive",
    "groups": 0,
    "files_before": 0,
    "files_asked": 0,
    "files_rewritten": 0,
    "files_written": 0,
    "bytes_rewritten": 0,
    "rows": 0,
    "target_file_size": 1,
    "share_before": 0.0,
    "share_after": 0.0,
}
SECRET = st.text("abcXYZ0189+/=%_.-~!$", min_size=8, max_size=40).map(lambda text: f"q{text}q")
HOLDING = (
    "spark.hadoop.fs.azure.account.key.acct.dfs.core.windows.net={}",
    "DefaultEndpointsProtocol=https;AccountName=a;AccountKey={};EndpointSuffix=core.windows.net",
    "Authorization: Bearer {}",
    "got 401 for Bearer {}",
    "no such bucket: s3://AKID:{}@bucket/table",
    "--conf must be key=value, not 'fs.s3a.secret.key:{}'",
    "https://acct.blob.core.windows.net/c/f.parquet?sv=2024&sig={}&se=2030",
    "https://b.s3.amazonaws.com/k?X-Amz-Signature={}&X-Amz-Expires=1",
    "jdbc:postgresql://host:5432/catalog?user=me&password={}",
    "jdbc:mysql://me:{}@host:3306/catalog",
    "AWS_SECRET_ACCESS_KEY={} AWS_REGION=eu",
    "AWS_SESSION_TOKEN='{}'",
    "fs.s3a.session.token: {}",
    '{{"fs.s3a.secret.key": "{}", "path": "x"}}',
    '"{{\\"password\\": \\"{}\\"}}"',
    "Map(client_secret -> 1, credential={}, other=2)",
    "Map(fs.s3a.secret.key -> {}, other -> 2)",
    "CALL c.system.f(password => '{}')",
    "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----",
    "gs.encryption.key = {}",
)


@pytest.mark.parametrize("text", HOLDING)
@given(secret=SECRET)
def test_what_a_secret_is_given_as_hides_it(text, secret):
    """However a secret is written into a setting, a URL or a header, it is not to be seen."""
    shown = mask_secrets(text.format(secret))

    assert secret not in shown
    assert MASK in shown
    assert mask_secrets(shown) == shown


@given(secret=SECRET)
def test_what_is_around_a_secret_stays(secret):
    """The message still says where to look."""
    shown = mask_secrets(
        f"s3a://K:{secret}@bucket/t is gone (https://a.b/c?sv=1&sig={secret}&se=2)"
    )

    assert shown == f"s3a://{MASK}@bucket/t is gone (https://a.b/c?sv=1&sig={MASK}&se=2)"


@pytest.mark.parametrize(
    "text",
    [
        "hdfs://namenode:9000/lake/a@b/part-0.parquet is missing",
        "abfss://container@acct.dfs.core.windows.net/lake/events",
        "'token=a/part-00000.parquet' and lake/key=5/part-0.parquet were changed",
        "the table has no column 'user_token'; available: `key`, secret",
        "where: `key` = 3 AND design = 4",
        "--by: duplicate column a; pass each column once",
        "lake/events was changed by another writer: 3 conflicts, first: 'a.parquet'",
    ],
)
def test_what_is_no_secret_stays(text):
    """Paths, names of columns and containers are what a user needs to read."""
    assert mask_secrets(text) == text


@given(st.text(max_size=200))
def test_any_text_can_be_masked_twice(text):
    """Errors are wrapped in errors, each of which masks."""
    once = mask_secrets(text)

    assert mask_secrets(once) == once


@pytest.mark.parametrize(
    "shape",
    [
        "AKIAIOSFODNN7EXAMPLE",
        "ghp_" + "a1" * 18,
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln",
        "A1b2" * 21 + "zZ==",
    ],
)
def test_what_gives_itself_away_needs_no_name(shape):
    """Keys and tokens of well-known shapes, wherever they stand."""
    assert shape not in mask_secrets(f"the call was refused ({shape})")


def test_errors_and_results_mask_by_themselves():
    """Whoever logs an error or a result logs no secret, and programs still get the name."""
    table = "s3://K:hidden@b/t"
    plan = Plan(table=table, **CONSTANTS)

    assert "hidden" not in str(UsageError(f"{table} is not a table"))
    assert "hidden" not in repr(UsageError(f"{table} is not a table"))
    assert "hidden" not in str(UnknownOutcomeError(table, "1"))
    assert UnknownOutcomeError(table, "1").table == table
    assert "hidden" not in f"{plan!r} {plan} {plan.facts()}"
