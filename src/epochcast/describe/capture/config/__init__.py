"""Settings of a training as other tools write them: what a config file or a script says of a job, in our options.

`read_settings` recognises a file by what is in it. Values are in the names of the options of a job and of where it
runs; what has no such name is listed, never dropped silently.
"""

from epochcast.describe.capture.config.config_file import read_settings
from epochcast.describe.capture.config.setting import ConfigSetting, ConfigSettings

__all__ = ["ConfigSetting", "ConfigSettings", "read_settings"]
