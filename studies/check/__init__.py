"""False alarms and first causes of `epochcast check` on measured runs."""
