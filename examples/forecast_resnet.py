"""One job on several devices: what does not depend on how fast they are, and in which order they finish."""

import epochcast as ec
from epochcast.api import Forecast

JOB = {"precision": "amp", "optimizer": "momentum", "dataset": "imagenet-1k", "epochs": 90}


def main() -> None:
    answers = {device: ec.forecast("resnet50", device=device, batch=64, **JOB) for device in ("T4", "V100", "H100")}
    for device, answer in answers.items():
        body = answer.as_dict()
        print(f"{device}: {body['device']}, {body['steps_per_epoch']:,} steps per epoch, fits: {body['fits']}")
        low, mid, high = answer.step_seconds.low, answer.step_seconds.mid, answer.step_seconds.high
        print(f"  interval in order: {low <= mid <= high}, parts sum to the step: {_sums_up(answer)}")
    by_time = sorted(answers, key=lambda device: answers[device].total_seconds.mid)
    print("fastest first:", ", ".join(by_time))


def _sums_up(answer: Forecast) -> bool:
    return abs(answer.step_parts.total_seconds - answer.step_seconds.mid) < 1e-12


if __name__ == "__main__":
    main()
