"""What the server counts of itself, for Prometheus."""

from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.5, 1, 2.5, 5, 10, 30)
"""Upper ends of the histogram's bins."""


@dataclass(slots=True)
class Metrics:
    """Counters of one process, in a registry of their own."""

    registry: CollectorRegistry = field(default_factory=CollectorRegistry)
    requests: Counter = field(init=False)
    request_seconds: Histogram = field(init=False)
    answers: Counter = field(init=False)
    observations: Counter = field(init=False)
    events: Counter = field(init=False)
    waiting: Gauge = field(init=False)
    streams: Gauge = field(init=False)
    runs: Gauge = field(init=False)
    webhooks: Gauge = field(init=False)

    def __post_init__(self) -> None:
        registry = self.registry
        self.requests = Counter(
            "epochcast_requests", "Requests by route and status.", ["route", "status"], registry=registry
        )
        self.request_seconds = Histogram(
            "epochcast_request_seconds",
            "Seconds until a request is answered.",
            ["route"],
            buckets=SECONDS,
            registry=registry,
        )
        self.answers = Counter(
            "epochcast_answers", "Answers by verb, made or kept.", ["verb", "source"], registry=registry
        )
        self.observations = Counter(
            "epochcast_observations", "Reports of running jobs that were kept.", registry=registry
        )
        self.events = Counter("epochcast_events", "Events sent to listeners.", registry=registry)
        self.waiting = Gauge("epochcast_questions_waiting", "Questions without a worker.", registry=registry)
        self.streams = Gauge("epochcast_streams", "Listeners to live events.", registry=registry)
        self.runs = Gauge(
            "epochcast_runs",
            "Runs of the store by state; those that are silent are running, too.",
            ["state"],
            registry=registry,
        )
        self.webhooks = Gauge(
            "epochcast_webhooks", "Messages to webhooks: waiting, sent, given up.", ["state"], registry=registry
        )

    def text(self) -> bytes:
        """All of them, as Prometheus reads them."""
        return generate_latest(self.registry)
