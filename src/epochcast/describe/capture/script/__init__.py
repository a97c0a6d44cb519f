"""Python scripts given without the function that makes the model: read, never run."""

from epochcast.describe.capture.script.script_answer import NeedsFactory, name_not_in_script, script_without_factory
from epochcast.describe.capture.script.script_search import Candidate, Script, read_script

__all__ = ["Candidate", "NeedsFactory", "Script", "name_not_in_script", "read_script", "script_without_factory"]
