"""How answers are shown: command line, terminal tables, charts, web dashboard and API, integrations."""
