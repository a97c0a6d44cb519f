"""Other versions, options and habits of the formats in `shapes`: trainers of language models, speech and translation."""

import json

from tests.observe.logs.shapes import Shape, bar
from tests.observe.logs.variants_vision import lines, minutes


def mllog(*events: tuple[int, str, dict[str, int]]) -> str:
    """MLPerf events: seconds, key, metadata."""
    form = (
        '0: :::MLLOG {{"namespace": "", "time_ms": {}, "event_type": "X", "key": "{}", "value": 0.5, "metadata": {}}}\n'
    )
    return "".join(form.format(1914680500000 + 1000 * at, key, json.dumps(told)) for at, key, told in events)


LANGUAGE = (
    Shape(
        "mllog",
        mllog(
            (0, "block_start", {"first_epoch_num": 1, "epoch_count": 4}),
            (40, "block_stop", {"first_epoch_num": 1}),
            (41, "eval_start", {"epoch_num": 4}),
            (45, "eval_stop", {"epoch_num": 4}),
            (45, "block_start", {"first_epoch_num": 5, "epoch_count": 4}),
            (85, "block_stop", {"first_epoch_num": 5}),
        ),
        8,
        None,
        45.0,
    ),
    Shape("mllog", mllog(*((10 * n, "block_stop", {"samples_count": 512 * n}) for n in range(1, 6))), 2560, None, 30.0),
    Shape(
        "mllog", mllog(*((10 * n, "eval_accuracy", {"epoch_num": 150000 * n}) for n in range(1, 6))), 750000, None, 30.0
    ),
    Shape(
        "mllog",
        mllog(
            *(
                (10 * n, key, told)
                for n in range(1, 9)
                for key, told in (("block_stop", {"first_epoch_num": 1}), ("eval_accuracy", {"epoch_num": 150000 * n}))
            )
        ),
        1200000,
        None,
        70.0,
    ),
    Shape(
        "megatron",
        minutes(
            "[rank0]: samples/sec: 12.3 | iteration      {n}/  320000 | elapsed time per iteration (ms): 1234.5 | learning rate: 1.0E-05 | approx flops per GPU: 50.1TFLOPS | lm_loss: 2.3E+00 | number of skipped iterations:   0 |",
            10,
            20,
            30,
        ),
        30,
        320000,
        37.035,
    ),
    Shape(
        "megatron",
        minutes(
            "7: [2031-01-02 03:0{m}:00] iteration      {n}/     500 | consumed samples:   20480 | elapsed time per iteration (s): 1.23 | learning rate: 1.0E-05 | lm loss: 2.3E+00 |",
            10,
            20,
            30,
        ),
        30,
        500,
        120.0,
    ),
    Shape(
        "deepspeed",
        minutes(
            "[2031-01-02 03:0{m}:00,123] [INFO] [timer.py:181:stop] 0/{n}, SamplesPerSec=25.02, MemAllocated=1.2GB, MaxMemAllocated=3.4GB",
            10,
            20,
            30,
        ),
        30,
        None,
        120.0,
    ),
    Shape(
        "deepspeed",
        minutes(
            "[2031-01-02 03:0{m}:00,123] [INFO] [timer.py:197:stop] 0/{n}, RunningAvgSamplesPerSec=25.02, CurrSamplesPerSec=24.1, MemAllocated=1.2GB",
            10,
            20,
            30,
        ),
        30,
        None,
        120.0,
    ),
    Shape(
        "deepspeed",
        lines("steps: {} loss: 2.3456 iter time (s): 0.500 samples/sec: 12.345", (10,), (20,), (30,)),
        30,
        None,
        15.0,
    ),
    Shape(
        "fairseq_simple",
        minutes(
            "2031-01-02 03:0{m}:00 | INFO | train | epoch 00{n} | loss 3.1 | nll_loss 2.2 | ppl 8.1 | wps 72384 | ups 1.2 | wpb 30000 | bsz 900 | num_updates {n}82 | lr 0.0005 | gnorm 0.5 | train_wall 48 | wall 300",
            1,
            2,
            3,
        ),
        3,
        None,
        120.0,
    ),
    Shape(
        "fairseq_simple",
        "".join(
            bar("epoch 001: ", n, 282, f"00:{n:02d}").replace(
                "it/s]", f"it/s, loss=3.147, nll_loss=2.1, ppl=8.1, wps=123, num_updates={n}, wall=0]"
            )
            + "\r"
            for n in range(5, 31, 5)
        ),
        30,
        None,
        30.0,
    ),
    Shape(
        "fairseq_simple",
        lines(
            "| epoch 001:   {} / 19937 loss=9.276, nll_loss=8.6, ppl=412.1, wps=30000, ups=1.2, wpb=25000, bsz=900, num_updates={}, lr=0.0001, gnorm=1.1, clip=0%, oom=0, wall={}, train_wall=80",
            (100, 101, 83),
            (200, 201, 166),
        ),
        200,
        None,
        166.0,
    ),
    Shape(
        "fairseq_json",
        minutes(
            '2031-01-02 03:0{m}:00 | INFO | train_inner | {{"epoch": 1, "update": 0.4, "loss": "9.2", "nll_loss": "8.8", "wps": "1", "num_updates": "{n}", "lr": "0.1", "train_wall": "3", "wall": "9"}}',
            100,
            200,
            300,
        ),
        300,
        None,
        120.0,
    ),
    Shape(
        "torchtitan",
        minutes(
            "[rank0]:2031-01-02 03:0{m}:00,123 - root - INFO - \x1b[36mstep: {n}  \x1b[32mloss: 12.2354  \x1b[33mmemory: 1.02GiB(1.07%)  \x1b[34mwps: 1,601  \x1b[35mmfu: 3.18%\x1b[39m",
            1,
            10,
            20,
        ),
        20,
        None,
        120.0,
    ),
    Shape(
        "nanogpt",
        lines("{} | loss 2.3456 | lr 1.000000e-04 | 500.00ms | mfu 12.30%", (0,), (10,), (20,)),
        21,
        None,
        10.5,
    ),
    Shape(
        "nanochat",
        lines(
            "step {:05d}/21400 (0.05%) | loss: 10.312345 | grad norm: 0.5 | lrm: 1.00 | dt: 500.00ms | tok/sec: 123,456 | mfu: 12.30 | total time: 1.23m",
            (1,),
            (2,),
            (3,),
        ),
        3,
        21400,
        1.5,
    ),
    Shape(
        "litgpt",
        lines(
            "Epoch 1 | iter {} step {} | loss train: 2.345, val: n/a | iter time: 500.00 ms (step) remaining time: 1:02:03",
            (4, 1),
            (8, 2),
            (12, 3),
        ),
        12,
        None,
        6.0,
    ),
    Shape(
        "llm.c",
        lines(
            "step {:4d}/1000 | train loss 10.1 | norm 1.2 | lr 1.00e-04 | (500.00 ms | 12345 tok/s)", (1,), (2,), (3,)
        ),
        3,
        1000,
        1.5,
    ),
    Shape(
        "modded_nanogpt",
        lines("step:{}/5100 train_loss:4.2 train_time:{}ms step_avg:140.00ms", (1, 140), (2, 280), (3, 420)),
        3,
        5100,
        0.42,
    ),
    Shape(
        "verl",
        lines(
            "(TaskRunner pid=901) step:{} - global_seqlen/mean:52000.0 - actor/pg_loss:0.01 - timing_s/gen:100.2 - "
            "timing_s/old_log_prob:12.1 - timing_s/update_actor:40.2 - timing_s/step:{} - perf/throughput:2200.5",
            (1, 168.0),
            (2, 168.0),
            (3, 168.0),
        ),
        3,
        None,
        504.0,
    ),
    Shape(
        "olmo",
        minutes(
            "2031-01-02 03:0{m}:00.123\thost:0\tolmo_core.train.callbacks.console_logger:92\tINFO\t[step={n}/1000,epoch=1,eta=1 day, 2:03:04]",
            10,
            20,
            30,
        ),
        30,
        1000,
        120.0,
    ),
    Shape(
        "nemo",
        lines(
            "Training epoch {}, iteration {}/99 | lr: 0.0001 | global_batch_size: 512 | global_step: {} | reduced_train_loss: 11.03 | train_step_timing in s: 0.5 | consumed_samples: 1024",
            (0, 98, 98),
            (0, 99, 99),
            (1, 0, 100),
        ),
        101,
        None,
        50.5,
    ),
    Shape(
        "lightning",
        "".join(
            bar("Epoch 0: :  ", n, 1000, f"00:{n:02d}").replace(
                "it/s]",
                f"it/s, loss=10.8, v_num=1, reduced_train_loss=10.70, global_step={n}.000, consumed_samples=1.0, train_step_timing in s=1.000]",
            )
            + "\r"
            for n in range(1, 31)
        ),
        30,
        None,
        30.0,
    ),
    Shape(
        "sockeye",
        lines(
            "[2031-12-17:20:0{}:00:INFO:sockeye.training:__call__] Epoch[0] Batch [{}]\tSpeed: 497.05 samples/sec 14941.30 tokens/sec 2.73 updates/sec\tperplexity=3929.8",
            (5, 50),
            (6, 100),
            (7, 150),
        ),
        150,
        None,
        120.0,
    ),
    Shape(
        "sockeye",
        lines(
            "[INFO:sockeye.training] Epoch[0] Batch [{}]\tSpeed: 497.05 samples/sec 14941.30 tokens/sec 2.00 updates/sec\tperplexity=3929.8",
            (50,),
            (100,),
            (150,),
        ),
        150,
        None,
        75.0,
    ),
    Shape(
        "joeynmt",
        minutes(
            "2031-01-02 03:0{m}:00,123 Epoch   1 Step:     {n} Batch Loss:     4.123456 Tokens per Sec:     1234, Lr: 0.000200",
            100,
            200,
            300,
        ),
        300,
        None,
        120.0,
    ),
    Shape(
        "joeynmt",
        minutes(
            "2031-01-02 03:0{m}:00,123 - INFO - joeynmt.training - Epoch   1, Step:     {n}, Batch Loss:     4.123456, Batch Acc: 0.1, Tokens per Sec:     1234, Lr: 0.000200",
            100,
            200,
            300,
        ),
        300,
        None,
        120.0,
    ),
    Shape(
        "opennmt",
        minutes(
            "[2031-01-02 03:0{m}:00,123 INFO] Step {n}/100000; acc: 4.5; ppl: 123.4; xent: 9.4; lr: 0.00001; sents:   1230; bsz: 1234/1234/ 5; 5678/6789 tok/s;     12 sec;",
            50,
            100,
            150,
        ),
        150,
        100000,
        120.0,
    ),
    Shape(
        "opennmt_tf",
        minutes(
            "2031-01-02 03:0{m}:00.123000: I runner.py:281] Step = {n} ; steps/s = 1.23, source words/s = 1234, target words/s = 2345 ; Learning rate = 0.000100 ; Loss = 9.123456",
            100,
            200,
            300,
        ),
        300,
        None,
        120.0,
    ),
    Shape(
        "opennmt",
        minutes(
            "[01/02/31 03:0{m}:00 INFO] Epoch 1 ; Iteration {n}/10000 ; Optim SGD LR 1.000000 ; Source tokens/s 1234 ; Perplexity 123.40",
            50,
            100,
            150,
        ),
        150,
        None,
        120.0,
    ),
    Shape(
        "flair",
        minutes(
            "2031-01-02 03:0{m}:00,123 epoch 1 - iter {n}/100 - loss 2.31 - time (sec): 12.30 - samples/sec: 123.40 - lr: 0.100000 - momentum: 0.000000",
            10,
            20,
            30,
        ),
        30,
        None,
        120.0,
    ),
    Shape(
        "tacotron",
        lines("Train loss {} 0.345678 Grad Norm 1.234567 0.50s/it", *((n,) for n in range(1, 20))),
        19,
        None,
        9.5,
    ),
    Shape(
        "espnet2",
        minutes(
            "[host] 2031-01-02 03:0{m}:00,123 (trainer:667) INFO: 1epoch:train:{n}batch: iter_time=0.1, forward_time=0.2, loss_ctc=3.1, loss=2.2, backward_time=0.1, optim_step_time=0.1, optim0_lr0=1.0e-04, train_time=1.2",
            "1-100",
            "101-200",
            "201-300",
        ),
        300,
        None,
        120.0,
    ),
    Shape(
        "wav2letter",
        lines(
            "epoch:        1 | nupdates: {:>12d} | lr: 0.100000 | lrcriterion: 0.000000 | runtime: {} | bch(ms): 500.00 | smp(ms): 1.00 | loss:   12.3",
            (100, "00:00:50"),
            (200, "00:00:50"),
            (300, "00:00:50"),
        ),
        300,
        None,
        150.0,
    ),
    Shape(
        "wenet",
        minutes(
            "2031-01-02 03:0{m}:00,123 DEBUG TRAIN Batch 0/{n} loss 12.300000 loss_att 1.0 loss_ctc 2.0 lr 0.00001000 rank 0",
            0,
            100,
            200,
        ),
        200,
        None,
        120.0,
    ),
    Shape(
        "icefall",
        minutes(
            "2031-01-02 03:0{m}:00,123 INFO [train.py:874] (0/4) Epoch 1, batch {n}, loss[loss=1.2, simple_loss=0.6, over 1234.00 frames.], tot_loss[loss=1.3, over 12.00 frames.], batch size: 30, lr: 3.00e-03",
            0,
            50,
            100,
        ),
        100,
        None,
        120.0,
    ),
    Shape(
        "kaldi",
        minutes(
            "2031-01-02 03:0{m}:00,123 [steps/nnet3/chain/train.py:525 - train - INFO ] Iter: {n}/239   Jobs: 3   Epoch: 0.05/4.0 (1.2% complete)   lr: 0.003000",
            0,
            1,
            2,
        ),
        3,
        240,
        120.0,
    ),
    Shape(
        "dllogger_text",
        minutes(
            "DLL 2031-01-02 03:0{m}:00.123456 - epoch    1 | iter   {n}/123 | loss 10.0 | wer 99.1 | throughput 12.3 utts/s | took 1.23 s | lr 1.0e-02",
            10,
            20,
            30,
        ),
        30,
        None,
        120.0,
    ),
    Shape(
        "dllogger_text",
        minutes(
            "DLL 2031-01-02 03:0{m}:00.123456 - Training Epoch: 0 Training Iteration: {n}  average_loss : 9.1  step_loss : 9.0  learning_rate : 1e-4",
            10,
            20,
            30,
        ),
        31,
        None,
        120.0,
    ),
    Shape(
        "dllogger_text",
        minutes(
            "DLL 2031-01-02 03:0{m}:00.123456 - Transformer | epoch 0 | step {n} |avg loss 9.100 |avg tokens 4600.100 |tokens/s 30421.203 |walltime 21.200 |",
            10,
            20,
            30,
        ),
        30,
        None,
        120.0,
    ),
    Shape(
        "dllogger_text",
        minutes("DLL 2031-01-02 03:0{m}:00.123456 - (0, {n}) loss : 2.345 ", 10, 20, 30),
        31,
        None,
        120.0,
    ),
)

LIBRARIES = (
    Shape(
        "tf1_estimator",
        minutes(
            "I0102 03:0{m}:00.123456 140 basic_session_run_hooks.py:262] loss = 1.2, step = {n} (60.0 sec)", 0, 100, 200
        ),
        200,
        None,
        120.0,
    ),
    Shape(
        "tf1_estimator",
        minutes("2031-01-02 03:0{m}:00.123456: step {n}, loss = 4.67 (2.2 examples/sec; 0.500 sec/batch)", 0, 10, 20),
        20,
        None,
        120.0,
    ),
    Shape(
        "tf1_estimator",
        lines("INFO:tensorflow:global step {}: loss = 2.3456 (0.500 sec/step)", (10,), (20,), (30,)),
        30,
        None,
        15.0,
    ),
    Shape(
        "tf1_estimator",
        lines(
            "INFO:tensorflow:global_step/sec: 2.0\nINFO:tensorflow:step = {}, loss = 2.3456 (50.000 sec)",
            (100,),
            (200,),
            (300,),
        ),
        300,
        None,
        150.0,
    ),
    Shape(
        "tf_object_detection",
        minutes(
            "INFO:tensorflow:Step {n} per-step time 0.203s loss=1.234\nI0102 03:0{m}:00.1 140 model_lib_v2.py:682] Step {n} per-step time 0.203s loss=1.234",
            100,
            200,
            300,
        ),
        300,
        None,
        120.0,
    ),
    Shape(
        "tf_object_detection",
        minutes("I0102 03:0{m}:00.1 140 model_lib_v2.py:705] Step {n} per-step time 0.203s", 100, 200, 300),
        300,
        None,
        120.0,
    ),
    Shape(
        "tf2",
        lines(
            "BenchmarkMetric: {{'global step':{}, 'time_taken': 5.0,'examples_per_second': 45.1}}",
            (100,),
            (200,),
            (300,),
        ),
        300,
        None,
        15.0,
    ),
    Shape(
        "tf2",
        minutes(
            "I0102 03:0{m}:00.1 140 model_training_utils.py:450] Train Step: {n}/1000  / loss = 2.3456", 100, 200, 300
        ),
        300,
        1000,
        120.0,
    ),
    Shape(
        "tf2",
        lines(
            "[1,0]<stderr>:I0102 03:0{}:00.1 140 keras_utils.py:145] TimeHistory: 12.30 seconds, 456.70 examples/second between steps {} and {}",
            (0, 0, 100),
            (1, 100, 200),
        ),
        200,
        None,
        60.0,
    ),
    Shape(
        "tf_cnn_benchmarks",
        lines("[1,0]<stdout>:{}\timages/sec: 201.3 +/- 0.4 (jitter = 1.2)\t7.912", (10,), (20,), (30,)),
        30,
    ),
    Shape(
        "keras_bar",
        "Train on 60000 samples, validate on 10000 samples\nEpoch 1/20\n"
        + lines("{:5d}/60000 [====>....] - ETA: {}s - loss: 0.3 - acc: 0.9", (30000, 30), (60000, 0))
        + "60000/60000 [======] - 61s 1ms/sample - loss: 0.3 - acc: 0.9 - val_loss: 0.2\n",
        60000,
        1200000,
        61.0,
    ),
    Shape(
        "keras_bar",
        "Epoch 1/20\n60000/60000 [==============================] - 12s - loss: 0.3553 - val_loss: 0.1\nEpoch 2/20\n60000/60000 [==============================] - 12s - loss: 0.2553\n",
        120000,
        1200000,
        24.0,
    ),
    Shape(
        "keras_bar",
        "2031-01-02 03:00:00 stdout: Epoch 1/20\n2031-01-02 03:01:00 stdout: 10/100 [==>.........] - ETA: 2:30 - loss: 0.3\n2031-01-02 03:02:00 stdout: 20/100 [====>.......] - ETA: 2:30 - loss: 0.3\n",
        20,
        2000,
        120.0,
    ),
    Shape(
        "keras_verbose2",
        "Epoch 1/20\n - 12s - loss: 0.3 - acc: 0.9\nEpoch 2/20\n - 11s - loss: 0.2 - acc: 0.9\n",
        2,
        20,
        23.0,
    ),
    Shape(
        "keras_verbose2",
        "Epoch 1/20\n60000/60000 - 12s - loss: 0.3 - accuracy: 0.9\nEpoch 2/20\n60000/60000 - 11s - loss: 0.2\n",
        120000,
        1200000,
        23.0,
    ),
    Shape(
        "keras3",
        "Epoch 1/5\n"
        + "".join(
            f"\x1b[1m{n:3d}/100\x1b[0m \x1b[32m━━━━\x1b[0m\x1b[37m━━━━\x1b[0m \x1b[1m{h}\x1b[0m 90s/step - loss: 0.9\r"
            for n, h in ((10, "2:15:00"), (20, "2:00:00"))
        ),
        20,
        500,
        1800.0,
    ),
    Shape(
        "lightning",
        "".join(bar("Epoch 0: ", n, 100, f"00:{n:02d}").replace("it/s]", "it/s, v_num=0]") + "\r" for n in range(1, 40))
        + "`Trainer.fit` stopped: `max_epochs=5` reached.\n",
        39,
        None,
        39.0,
    ),
    Shape(
        "lightning",
        "".join(f"Epoch 0: |          | {n}/? [00:{n:02d}<?, 1.00it/s, v_num=0]\r" for n in range(1, 30)),
        29,
        None,
        29.0,
    ),
    Shape(
        "lightning",
        "".join(f"Epoch 0: : {n}it [00:{n:02d},  1.00it/s, v_num=0]\r" for n in range(1, 30)),
        29,
        None,
        29.0,
    ),
    Shape(
        "lightning",
        "".join(
            f"Epoch 0/9  ━━━━━━━╸━━━━━━━ {n}/100 0:00:{n:02d} • 0:01:{59 - n:02d} 1.00it/s v_num: 0.000 train_loss: 0.312\n"
            for n in range(1, 30)
        ),
        29,
        1000,
        29.0,
    ),
    Shape("tqdm", "".join(f"{n}it [00:{n:02d},  1.00it/s]\r" for n in range(1, 30)), 29, None, 29.0),
    Shape(
        "tqdm",
        "".join(
            f"train: {n:3d}%|##5       | {n / 10:.1f}k/10.0k [00:{n:02d}<01:00, 100.00batch/s, loss=0.3]\r"
            for n in range(1, 30)
        ),
        2900,
        10000,
        29.0,
    ),
    Shape(
        "tqdm",
        "".join(
            bar("Steps: ", n, 1000, f"00:{n:02d}").replace("it/s]", "it/s, lr=1e-5, step_loss=0.1]") + "\r"
            for n in range(1, 30)
        ),
        29,
        1000,
        29.0,
    ),
    Shape(
        "tqdm",
        "".join(
            bar("Epochs: ", e, 3, f"00:{e * 9:02d}")
            + "\n"
            + "".join(bar("Batches: ", n, 10, f"00:{n:02d}") + "\r" for n in range(11))
            + "\n"
            for e in range(2)
        ),
        20,
        30,
        20.0,
    ),
    Shape(
        "hf_tqdm",
        "[INFO|trainer.py:1779] 2031-01-02 03:00:00,123 >>   Num Epochs = 3\n[INFO|trainer.py:1779] 2031-01-02 03:00:00,123 >>   Total optimization steps = 1,500\n"
        + "".join(bar("", n, 1500, f"00:{n:02d}") + "\r" for n in range(1, 30))
        + "{'loss': '2.3', 'grad_norm': '1.2', 'learning_rate': '1e-05', 'epoch': '0.05'}\n",
        29,
        1500,
        29.0,
    ),
    Shape(
        "hf_dict",
        "***** Running training *****\n  Num Epochs = 2\n  Total optimization steps = 200\n"
        + lines(
            "{{'loss': 1.2, 'grad_norm': 0.3, 'learning_rate': 1e-06, 'num_tokens': 12345.0, 'completions/mean_length': 99.0, 'epoch': {}}}",
            (0.5,),
            (1.0,),
        ),
        100,
        200,
    ),
    Shape(
        "hf_dict",
        "  Num Epochs = 2\n  Total optimization steps = 200\n"
        + lines(
            "{{'eps': 4, 'objective/kl': 0.1, 'loss/policy_avg': 0.2, 'lr': 1e-06, 'episode': 8, 'epoch': {}}}",
            (0.5,),
            (1.0,),
        ),
        100,
        200,
    ),
    Shape(
        "hf_dict",
        "  Num Epochs = 2\n  Total optimization steps = 200\n"
        + lines('{{"loss": 1.2, "learning_rate": 1e-06, "epoch": {}, "step": {}}}', (0.5, 50), (1.0, 100)),
        100,
        200,
    ),
    Shape(
        "csv_no_time",
        "epoch,step,train_loss,val_loss\n" + lines("0,{},1.2,", (49,), (99,), (149,), (199,), (249,)),
        250,
    ),
    Shape("csv_no_time", "epoch;accuracy;loss;val_loss\n" + lines("{};0.5;1.2;1.1", (0,), (1,), (2,), (3,), (4,)), 5),
    Shape(
        "csv_time",
        "step\ttime\tloss\n" + lines("{}\t{}\t0.5", (10, 1.5), (20, 3.0), (30, 4.5), (40, 6.0)),
        41,
        None,
        6.0,
    ),
    Shape(
        "chainer_text",
        "epoch       iteration   main/loss   main/accuracy  elapsed_time\n"
        + lines("{:<11d} {:<11d} 1.4         0.51           {:<12}", (0, 100, 29.5), (0, 200, 57.5), (1, 300, 85.5)),
        300,
        None,
        85.5,
    ),
    Shape(
        "fastai",
        "epoch     train_loss  valid_loss  accuracy  time    \n"
        + lines("{:<9d} 0.512345    0.412345    0.901234  00:30     ", (0,), (1,), (2,)),
        3,
        None,
        90.0,
    ),
    Shape(
        "mxnet_speedometer",
        minutes(
            "2031-01-02 03:0{m}:00,123 Node[0] Epoch[0] Batch [{n}]\tSpeed: 100.20 samples/sec\tTrain-accuracy=0.2",
            20,
            40,
            60,
        ),
        60,
        None,
        120.0,
    ),
    Shape(
        "jax",
        lines("completed step: {}, steps/s: 2.0, TFLOP/s/device: 100.1, loss: 2.3", (0,), (1,), (2,)),
        3,
        None,
        1.5,
    ),
    Shape(
        "jax",
        minutes(
            "I0102 03:0{m}:00.1 140 local.py:52] Setting work unit notes: 3.2 steps/s, 10.0% ({n}/1000), ETA: 5m",
            100,
            200,
            300,
        ),
        300,
        1000,
        120.0,
    ),
    Shape(
        "jax",
        minutes("I0102 03:0{m}:00.123 140 logging_writer.py:48] [{n}] loss=2.3, steps_per_second=1.2", 100, 200, 300),
        300,
        None,
        120.0,
    ),
    Shape(
        "composer",
        lines("[epoch=1][batch={}/1563]:\n\t Train time/batch: 1\n\t Train loss/train/total: 2.3", (1,), (2,), (3,)),
        1566,
    ),
)
