"""The server: a REST API and pages over forecasts, plans, runs and queues (`epochcast serve`)."""
