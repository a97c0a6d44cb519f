import yaml

from .conftest import Command

LINE = "forecast resnet18 --device V100 --batch 32 --dataset imagenet-1k --gpus 4"


def test_a_batch_script_is_printed_and_nothing_else(command: Command) -> None:
    ran = command(f"{LINE} --slurm --run train.sh")
    assert ran.code == 0
    assert ran.out.startswith("#!/bin/bash\n# ")
    assert "#SBATCH --gres=gpu:v100:4\n" in ran.out
    assert ran.out.endswith("\nsrun train.sh\n")


def test_json_has_the_texts_beside_the_forecast(command: Command) -> None:
    body = command(f"{LINE} --slurm --skypilot --kueue --queue q --image i --ray --run train.sh --json").json
    assert body["gpus"] == 4
    assert yaml.safe_load(body["skypilot"])["resources"]["accelerators"] == "V100:4"
    assert yaml.safe_load(body["kueue"])["metadata"]["labels"] == {"kueue.x-k8s.io/queue-name": "q"}
    assert body["slurm"].startswith("#!/bin/bash")
    assert '"entrypoint": "train.sh"' in body["ray"]


def test_what_is_missing_is_one_line(command: Command) -> None:
    for line, message in (
        (f"{LINE} --ray", "--run 'python train.py'"),
        (f"{LINE} --kueue --run train.sh", "give --queue and --image"),
        ("forecast resnet18 --device V100 --batch 32 --slurm", "give a dataset or samples"),
    ):
        ran = command(line)
        assert (ran.code, ran.out) == (2, "")
        assert message in ran.err


PLAN = "plan mnist_cnn --samples 60000 --epochs 100 --batch 512 --clouds aws,lambda --gpus 1,8 --run train.sh"


def test_a_plan_hands_its_choice_over(command: Command) -> None:
    line = f"{PLAN} --deadline 1d"
    chosen = command(f"{line} --json").json["chosen"]
    task = yaml.safe_load(command(f"{line} --skypilot").out)
    assert task["resources"]["infra"] == f"{chosen['cloud']}/{chosen['region']}"
    assert task["resources"]["instance_type"] == chosen["offer"]
    assert "#SBATCH --time=" in command(f"{line} --slurm").out


def test_a_plan_hands_over_what_it_recommends_and_nothing_where_no_limit_is_met(command: Command) -> None:
    assert "#SBATCH --time=" in command(f"{PLAN} --slurm").out
    missed = command(f"{PLAN} --slurm --deadline 1s")
    assert missed.code == 3 and "#SBATCH" not in missed.out
