"""A configuration of OpenLineage's client that sends events to a file."""

import json
from pathlib import Path


def configure(folder, transport):
    """Write the client's configuration; it is found if *folder* is the working directory."""
    file = Path(folder, "openlineage.yml")
    file.write_text(json.dumps({"transport": transport}))  # JSON is YAML
    return file


def send_to_file(folder):
    """Return the configuration, and a function that reads the events that were sent."""
    sent = Path(folder, "events.jsonl")
    file = configure(folder, {"type": "file", "log_file_path": str(sent), "append": True})

    def read():
        lines = sent.read_text().splitlines() if sent.exists() else ()
        return [json.loads(line) for line in lines]

    return file, read
