"""A database of jobs, runs, their forecasts and what was seen of them: SQLite by default, PostgreSQL by its URL.

`opening.open_store` gives a `Store`. Rows are plain values (`rows`); who watches a training makes them of what it saw.
"""
