"""Settings with which a JVM logs errors only, unless the user has configured its logging."""

import os
from collections.abc import Mapping
from pathlib import Path

from zadapter.spark import settings

CONFIGURATION = Path(__file__).with_name("log4j2.properties")
_PROGRESS = "spark.ui.showConsoleProgress"
_VARIABLE = "LOG4J_CONFIGURATION_FILE"


def additions(stated: Mapping[str, str], added: Mapping[str, str]) -> dict[str, str]:
    """Return *added* with settings that silence log4j and the console's progress bar.

    Args:
        stated: The user's settings, which take precedence.
        added: Settings of the new session so far.
    """
    silent = {} if _PROGRESS in stated else {_PROGRESS: "false"}
    if not _configured(stated):
        before = added.get(settings.JAVA_OPTIONS, stated.get(settings.JAVA_OPTIONS, ""))
        option = f"-Dlog4j2.configurationFile={CONFIGURATION.as_uri()}"
        silent[settings.JAVA_OPTIONS] = f"{before} {option}".strip()
    return {**added, **silent}


def _configured(stated: Mapping[str, str]) -> bool:
    """Return whether the user has configured log4j, by an option, a variable or a file."""
    options = (stated.get(key, "") for key in (settings.JAVA_OPTIONS, settings.EXTRA_JAVA_OPTIONS))
    variables = (os.environ.get(name, "") for name in settings.JAVA_VARIABLES)
    if _VARIABLE in os.environ or any("log4j" in text for text in (*options, *variables)):
        return True
    return any(settings.conf_folder().glob("log4j2*.*[!e]"))
