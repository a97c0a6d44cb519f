"""Python scripts given without the function that makes the model: read, never run."""

from epochcast.describe.capture.script.script_answer import NeedsFactory, name_not_in_script, script_without_factory
from epochcast.describe.capture.script.script_search import ModelCandidate, Script, read_script

__all__ = ["ModelCandidate", "NeedsFactory", "Script", "name_not_in_script", "read_script", "script_without_factory"]
