"""Masking of secrets in messages and reports."""

import re
from dataclasses import fields
from typing import Any

MASK = "***"

_WORDS = (
    r"secret|passw(?:or)?d|passphrase|pwd|token|credential|authorization|signature"
    r"|(?:access|account|api|auth|client|encryption|master|private|service|session|shared|signing"
    r"|ssh|storage)[._-]?key"
)
"""Words that mark the value of a name as a secret."""
_NAME = rf"[\w.-]*(?:{_WORDS})[\w.-]*|[\w-]+\.(?:[\w-]+\.)*key(?:\.[\w.-]+)?|sas|sig|(?<=[?&;])key"
_VALUE = (
    r"""(?P<quote>\\*["'])(?:(?!(?P=quote)).)*|(?:bearer|basic)[ ]+[^\s&;,"'<>]+"""
    r"""|(?:[^\s&;,"'<>]|,(?!\s|[\w.-]+=))+"""
)
_FILE = r"[^\s&,;]*/[^\s&,;]*\.parquet"
"""The rest of a path with a folder such as ``token=a/part-0.parquet``, which is not a secret."""

_ASSIGNED = (
    rf"""(?<![\w.$/-])(?P<keep>(?:{_NAME})\\*["']?[ \t]*(?:[=-]>|[=:]|%3D)[ \t]*)(?!{_FILE})"""
    rf"(?:{_VALUE})"
)

_RULES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE | re.DOTALL), shown)
    for pattern, shown in (
        (
            r"(?P<keep>-----BEGIN [A-Z ]*PRIVATE KEY-----).*?(?:(?=-----END )|\Z)",
            rf"\g<keep>{MASK}",
        ),
        # digits only are a port
        (r"(?P<keep>://)[^\s/@:]*:(?!\d+[/\s])[^\s@]*@", rf"\g<keep>{MASK}@"),
        # Azure has the container's name there
        (
            r"(?P<keep>(?<!abfs)(?<!abfss)(?<!wasb)(?<!wasbs)://)[^\s/@:]+@",
            rf"\g<keep>{MASK}@",
        ),
        (r"(?P<keep>\bjdbc:oracle:\w+:)[^\s@:]*/[^\s@]*@", rf"\g<keep>{MASK}@"),
        (_ASSIGNED, rf"\g<keep>\g<quote>{MASK}"),
        (r"(?P<keep>\bbearer[ \t]+)[^\s,;\"'<>]+", rf"\g<keep>{MASK}"),
        # secrets by shape: ids of AWS keys, GitHub tokens, JSON web tokens, Azure keys
        (r"\b(?-i:AKIA|ASIA)[A-Z0-9]{16}\b", MASK),
        (r"\b(?:gh[opsur]_|github_pat_)\w{20,}", MASK),
        (r"\beyJ[\w-]+\.[\w-]+\.[\w-]*", MASK),
        (r"(?<![\w+/])[A-Za-z0-9+/]{86}==", MASK),
    )
)


def mask_secrets(text: str) -> str:
    """Return *text* with likely secrets replaced by asterisks.

    Secrets are recognised by the name before them, by their place in a URL, and by their shape.

    >>> mask_secrets("fs.s3a.secret.key=abc, s3://id:secret@bucket/t, https://a/b?sv=1&sig=x%2F")
    'fs.s3a.secret.key=***, s3://***@bucket/t, https://a/b?sv=1&sig=***'
    """
    for pattern, shown in _RULES:
        text = pattern.sub(shown, text)
    return text


def mask_fields(value: Any) -> None:
    """Mask secrets in the text fields of a new frozen dataclass, including tuples of texts."""
    for field in fields(value):
        kept = getattr(value, field.name)
        if isinstance(kept, str):
            # members of string enumerations are not masked
            shown: Any = kept if type(kept) is not str else mask_secrets(kept)
        elif isinstance(kept, tuple):
            shown = tuple(mask_secrets(item) if type(item) is str else item for item in kept)
        else:
            continue
        object.__setattr__(value, field.name, shown)
