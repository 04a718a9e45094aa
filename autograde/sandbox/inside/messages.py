"""Write a grading kernel's messages: Jupyter's own way, and never failing on text."""

import json
from typing import Any

from jupyter_client.session import json_packer
from traitlets.config import Config

PACKER = {"packer": f"{__name__}.pack", "unpacker": "json"}
"""Options of jupyter_client's `Session`."""
CONFIG = Config(Session=PACKER)
ARGUMENTS = [f"--Session.{name}={value}" for name, value in PACKER.items()]


def pack(message: Any) -> bytes:
    """Return a message as JSON; half a character, which UTF-8 cannot hold, becomes an escape.

    Else the message is lost, and with it those that follow, which costs the cell its time.
    """
    try:
        return bytes(json_packer(message))
    except UnicodeEncodeError:
        return json.dumps(message, default=str).encode()
