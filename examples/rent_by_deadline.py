"""The lead's questions: the cheapest machine that is done in eight hours, and the fastest that $200 buy."""

import epochcast as ec


def main() -> None:
    answer = ec.plan(
        "resnet50", dataset="imagenet-1k", epochs=90, batch=1024, precision="amp", clouds=("aws", "gcp"), gpus=(8,)
    )
    for plan in (answer.within(deadline_seconds=8 * 3600), answer.within(budget_dollars=200)):
        chosen = plan.chosen
        assert chosen is not None
        print(f"{chosen.offer.instance.cloud}: {chosen.offer.name}, {chosen.offer.gpus} × {chosen.offer.device.name}")
    print(f"{len(answer.frontier)} of {answer.considered} ways are on the frontier")


if __name__ == "__main__":
    main()
