"""The trainings: what is trained, by which framework, how it reports, and what happens on the way."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Training:
    """One training of about `seconds` seconds; the number of steps follows from a few steps timed beforehand.

    Intervals (`…_every`) are in steps, moments (`…_at`) fractions of the steps. Zero: it does not happen.
    """

    name: str
    framework: str = "torch"
    printer: str = "logging"
    model: str = "cnn"
    seconds: float = 30.0
    epochs: int = 3
    report_every: int = 10
    validation_every: int = 0
    validation_steps: int = 40
    checkpoint_every: int = 0
    slow_every: int = 0
    pause_at: float = 0.0
    stall_at: float = 0.0
    compete_at: float = 0.0
    restart_at: float = 0.0
    stop_at: float = 0.0
    grows: bool = False
    compiles: bool = False

    @property
    def happens(self) -> str:
        """In words."""
        told = {
            "validation": self.validation_every,
            "checkpoints": self.checkpoint_every,
            "slow every Nth step": self.slow_every,
            "a pause": self.pause_at,
            "a data stall": self.stall_at,
            "a competing process": self.compete_at,
            "a restart": self.restart_at,
            "stopped early": self.stop_at,
            "growing inputs": self.grows,
            "compiled": self.compiles,
        }
        return ", ".join(name for name, value in told.items() if value) or "steady"


def _torch(printer: str, model: str, happening: str, **options: float) -> Training:
    return Training(f"{printer}-{model}-{happening}", "torch", printer, model, **options)  # type: ignore[arg-type]


def _other(framework: str, printer: str, model: str, happening: str, **options: float) -> Training:
    return Training(f"{framework}-{printer}-{model}-{happening}", framework, printer, model, **options)  # type: ignore[arg-type]


TRAININGS: tuple[Training, ...] = (
    _torch("imagenet", "cnn", "steady"),
    _torch("imagenet", "cnn", "validated", validation_every=1, epochs=5),
    _torch("imagenet", "cnn", "slow", slow_every=50),
    _torch("imagenet", "mlp", "stalled", stall_at=0.4),
    _torch("imagenet", "cnn", "rivalled", compete_at=0.4, seconds=40),
    _torch("imagenet", "cnn", "restarted", restart_at=0.5, checkpoint_every=100),
    _torch("imagenet", "cnn", "resized", grows=True, epochs=6),
    _torch("nanogpt", "gpt", "steady", epochs=1),
    _torch("nanogpt", "gpt", "growing", grows=True, epochs=1),
    _torch("nanogpt", "gpt", "validated", validation_every=60, checkpoint_every=60, epochs=1),
    _torch("nanogpt", "gpt", "paused", pause_at=0.45, epochs=1),
    _torch("nanogpt", "gpt", "compiled", compiles=True, epochs=1),
    _torch("logging", "lstm", "steady"),
    _torch("logging", "lstm", "saved", checkpoint_every=80, epochs=4),
    _torch("logging", "mlp", "stopped", stop_at=0.6, validation_every=1, epochs=10),
    _torch("logging", "mlp", "stalled", stall_at=0.6),
    _torch("logging", "lstm", "rivalled", compete_at=0.6, seconds=40),
    _torch("logging", "gpt", "restarted", restart_at=0.35, checkpoint_every=40, validation_every=1),
    _torch("tqdm", "cnn", "steady"),
    _torch("tqdm", "lstm", "validated", validation_every=1, epochs=4),
    _torch("tqdm", "gpt", "slow", slow_every=30),
    _torch("tqdm", "mlp", "paused", pause_at=0.3),
    _torch("tqdm", "gpt", "growing", grows=True),
    _torch("jsonl", "gpt", "validated", validation_every=60, epochs=2),
    _torch("jsonl", "cnn", "longer", seconds=80, epochs=8, validation_every=1, checkpoint_every=200),
    _other("keras", "verbose1", "cnn", "steady"),
    _other("keras", "verbose1", "cnn", "validated", validation_every=1, epochs=5),
    _other("keras", "verbose1", "mlp", "stopped", stop_at=0.5, validation_every=1, epochs=10),
    _other("keras", "verbose2", "cnn", "validated", validation_every=1, epochs=8),
    _other("keras", "verbose2", "mlp", "paused", pause_at=0.5, epochs=8),
    _other("keras", "verbose1", "cnn", "rivalled", compete_at=0.5, seconds=40),
    _other("lightning", "tqdm", "cnn", "steady"),
    _other("lightning", "tqdm", "lstm", "validated", validation_every=1, checkpoint_every=1, epochs=4),
    _other("lightning", "tqdm", "mlp", "stalled", stall_at=0.5),
    _other("lightning", "tqdm", "gpt", "restarted", restart_at=0.5, checkpoint_every=60, epochs=2),
    _other("transformers", "tqdm", "gpt", "steady", epochs=2),
    _other("transformers", "tqdm", "gpt", "validated", validation_every=50, checkpoint_every=100, epochs=2),
    _other("transformers", "tqdm", "gpt", "restarted", restart_at=0.5, checkpoint_every=50, epochs=2),
    _other("transformers", "tqdm", "lstm", "slow", slow_every=40, epochs=3),
    _other("transformers", "tqdm", "cnn", "rivalled", compete_at=0.3, seconds=40, epochs=3),
)


def training(name: str) -> Training:
    return next(one for one in TRAININGS if one.name == name)
