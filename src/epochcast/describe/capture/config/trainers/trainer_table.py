"""All trainers whose files and command lines are read by a table of keys, in the order in which they are recognised."""

from epochcast.describe.capture.config.key_table import Trainer
from epochcast.describe.capture.config.trainers.axolotl import AXOLOTL
from epochcast.describe.capture.config.trainers.diffusers_scripts import DIFFUSERS_SCRIPTS
from epochcast.describe.capture.config.trainers.kohya import KOHYA
from epochcast.describe.capture.config.trainers.lerobot import LEROBOT
from epochcast.describe.capture.config.trainers.llama_factory import LLAMA_FACTORY
from epochcast.describe.capture.config.trainers.megatron import MEGATRON
from epochcast.describe.capture.config.trainers.ms_swift import MS_SWIFT
from epochcast.describe.capture.config.trainers.nemo import NEMO, NEMO_AUTOMODEL
from epochcast.describe.capture.config.trainers.nnunet_plans import NNUNET
from epochcast.describe.capture.config.trainers.reward_trainers import REWARD_TRAINERS
from epochcast.describe.capture.config.trainers.simpletuner import SIMPLE_TUNER
from epochcast.describe.capture.config.trainers.torchtune import TORCHTUNE
from epochcast.describe.capture.config.trainers.trl import TRL
from epochcast.describe.capture.config.trainers.ultralytics import ULTRALYTICS

TRAINERS: tuple[Trainer, ...] = (
    *REWARD_TRAINERS,
    *(
        TORCHTUNE,
        AXOLOTL,
        LLAMA_FACTORY,
        MS_SWIFT,
        SIMPLE_TUNER,
        DIFFUSERS_SCRIPTS,
        KOHYA,
        ULTRALYTICS,
        NNUNET,
        LEROBOT,
        NEMO_AUTOMODEL,
    ),
    *(NEMO, MEGATRON, TRL),
)
