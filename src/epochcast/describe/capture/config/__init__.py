"""Settings of a training as other tools write them: what a config file or a script says of a job, in our options.

`config_file.read_settings` recognises a file by what is in it. Values are in the names of the options of a job and of
where it runs; what has no such name is listed, never dropped silently.
"""
