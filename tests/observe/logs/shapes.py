"""A few lines in the shape of every format, written for these tests, with what they say."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Shape:
    """Lines of a format; where the run stands after them: steps, total, clock at the last training line."""

    name: str
    text: str
    step: float
    total: float | None = None
    clock_seconds: float | None = None
    attempts: int = 1


def bar(words: str, done: int, total: int, elapsed: str, rest: str = "00:09", rate: str = "2.00it/s") -> str:
    return f"{words}{100 * done // total:3d}%|███▍      | {done}/{total} [{elapsed}<{rest},  {rate}]"


STAMP = "2031-04-05 06:0{}:00,000"

SHAPES = (
    Shape(
        "caffe",
        "I0230 00:00:00.0 1 solver.cpp:48] Initializing\nmax_iter: 900\n"
        "I0727 23:59:50.500000 77 solver.cpp:228] Iteration 0, loss = 3.5\n"
        "I0727 23:59:50.600000 77 sgd_solver.cpp:106] Iteration 0, lr = 0.01\n"
        "I0727 23:59:55.500000 77 solver.cpp:228] Iteration 100 (20 iter/s, 5s/100 iters), loss = 1.25\n"
        "I0728 00:00:00.500000 77 solver.cpp:337] Iteration 200, Testing net (#0)\n"
        "I0728 00:00:01.500000 77 solver.cpp:228] Iteration 200, loss = 1.1\n",
        200,
        900,
        11.0,
    ),
    Shape(
        "tf1_estimator",
        "INFO:tensorflow:  Num steps = 700\nINFO:tensorflow:loss = 68.5, step = 0\nINFO:tensorflow:global_step/sec: 50.0\n"
        "INFO:tensorflow:loss = 8.5, step = 100 (2.500 sec)\nINFO:tensorflow:loss = 6.5, step = 200 (1.500 sec)\n",
        200,
        700,
        4.0,
    ),
    Shape(
        "tf_cnn_benchmarks",
        "Num batches:  100\nStep\tImg/sec\ttotal_loss\n1\timages/sec: 201.3 +/- 0.0 (jitter = 0.0)\t7.9 1900000000\n"
        "10\timages/sec: 201.3 +/- 0.4 (jitter = 1.2)\t7.8 1900000009\n20\timages/sec: 201.3 +/- 0.4 (jitter = 1.2)\t7.7 1900000019\n",
        20,
        100,
        19.0,
    ),
    Shape(
        "tf2",
        "I0101 10:00:00.0 9 controller.py:479] train | step:     50 | steps/sec:    5.0 | output: {}\n"
        "I0101 10:00:10.0 9 controller.py:479] train | step:    100 | steps/sec:    5.0 | output: {}\n"
        "I0101 10:00:12.0 9 controller.py:300]  eval | step:    100 | output: {}\n"
        "I0101 10:00:25.0 9 controller.py:479] train | step:    150 | steps/sec:    5.0 | output: {}\n",
        150,
        None,
        25.0,
    ),
    Shape(
        "keras_bar",
        "Downloading data from https://x/y.h5\n 8192/166094648 [....] - ETA: 1:25:07\n166094648/166094648 [====] - 9s 0us/step\n"
        "Epoch 1/20\n 25/100 [==>.....] - ETA: 15s - loss: 0.07\r 50/100 [====>...] - ETA: 10s - loss: 0.06\r"
        "100/100 [========] - 21s 210ms/step - loss: 0.05 - val_loss: 0.1\nEpoch 2/20\n 50/100 [====>...] - ETA: 10s - loss: 0.04\r"
        "100/100 [========] - 20s 200ms/step - loss: 0.03\n30/30 [========] - 1s 9ms/step\n",
        200,
        2000,
        41.0,
    ),
    Shape(
        "keras3",
        "Epoch 1/5\n\x1b[1m  50/100\x1b[0m \x1b[32m━━━━\x1b[0m\x1b[37m━━━━\x1b[0m \x1b[1m4s\x1b[0m 80ms/step - loss: 0.9\r"
        "\x1b[1m100/100\x1b[0m \x1b[32m━━━━━━━━\x1b[0m\x1b[37m\x1b[0m \x1b[1m9s\x1b[0m 85ms/step - loss: 0.8 - val_loss: 0.7\n"
        "Epoch 2/5\n100/100 ━━━━━━━━ 8s 80ms/step - loss: 0.7\n",
        200,
        500,
        17.0,
    ),
    Shape(
        "keras_verbose2",
        "Epoch 1/3\n333/333 - 2s - 6ms/step - loss: 3.4982\nEpoch 2/3\n333/333 - 3s - 9ms/step - loss: 3.1\n",
        666,
        999,
        5.0,
    ),
    Shape(
        "pytorch_imagenet",
        "Epoch: [0][ 0/50]\tTime  2.0 ( 2.0)\tData  0.5 ( 0.5)\tLoss 6.9e+00 (7.0e+00)\n"
        "Epoch: [0][49/50]\tTime  0.5 ( 0.6)\tData  0.0 ( 0.1)\tLoss 6.9e+00 (7.0e+00)\nTest: [ 0/9]\tTime 1.0 (1.0)\n"
        "Epoch: [1][ 9/50]\tTime  0.5 ( 0.5)\tData  0.0 ( 0.1)\tLoss 5.9e+00 (6.0e+00)\n",
        60,
        None,
        35.0,
    ),
    Shape(
        "timm",
        "Scheduled epochs: 10. LR stepped per epoch.\n"
        "Train: 0 [   0/40 (  0%)]  Loss: 6.9 (6.9)  Time: 3.000s, 10.00/s  (3.000s, 10.00/s)  LR: 1.0e-06  Data: 0.010 (0.030)\n"
        "Train: 0 [  39/40 (100%)]  Loss: 6.8 (6.9)  Time: 0.500s, 90.00/s  (0.500s, 90.00/s)  LR: 1.0e-06  Data: 0.010 (0.030)\n"
        "Test: [   0/9]  Time: 1.0 (1.0)\n"
        "Train: 1 [  19/40 ( 50%)]  Loss: 6.7 (6.9)  Time: 0.500s, 90.00/s  (0.500s, 90.00/s)  LR: 1.0e-06  Data: 0.010 (0.030)\n",
        60,
        400,
        30.0,
    ),
    Shape(
        "swin",
        "[2031-01-01 10:00:00 t] (main.py 3): INFO Train: [0/30][0/90]\teta 0:01:30 lr 0.1\t wd 0.05\ttime 1.0 (1.0)\tloss 6.9 (6.9)\n"
        "[2031-01-01 10:00:10 t] (main.py 3): INFO Train: [0/30][10/90]\teta 0:01:20 lr 0.1\t wd 0.05\ttime 1.0 (1.0)\tloss 6.8 (6.9)\n"
        "[2031-01-01 10:02:00 t] (main.py 3): INFO Train: [1/30][10/90]\teta 0:01:20 lr 0.1\t wd 0.05\ttime 1.0 (1.0)\tloss 6.7 (6.9)\n",
        101,
        2700,
        120.0,
    ),
    Shape(
        "metriclogger",
        "Namespace(batch_size=2, epochs=4, lr=0.1)\n"
        "Epoch: [0]  [ 0/20]  eta: 0:00:20  loss: 3.0 (3.0)  time: 1.0  data: 0.5  max mem: 99\n"
        "Epoch: [0]  [10/20]  eta: 0:00:10  loss: 2.0 (2.5)  time: 1.0  data: 0.1  max mem: 99\n"
        "Epoch: [0] Total time: 0:00:22 (1.1 s / it)\nTest:  [ 0/5]  eta: 0:00:02  time: 0.4\nTest: Total time: 0:00:02 (0.4 s / it)\n"
        "Epoch: [1]  [ 0/20]  eta: 0:00:20  loss: 2.0 (2.0)  time: 1.0  data: 0.5  max mem: 99\n"
        "Epoch: [1] Total time: 0:00:20 (1.0 s / it)\n",
        40,
        80,
        44.0,
    ),
    Shape(
        "torch7",
        "  maxEpoch : 9\nEpoch: [1][1/4]\tTime 0.8 DataTime 0.5, loss 3.7\t\nEpoch: [1][2/4]\tTime 0.7 DataTime 0.0, loss 3.6\t\n",
        2,
        36,
        1.5,
    ),
    Shape(
        "mmcv_text",
        "2031-05-03 20:02:00,000 - mmdet - INFO - workflow: [('train', 1)], max: 12 epochs\n"
        "2031-05-03 20:02:10,000 - mmdet - INFO - Epoch [1][50/730]\tlr: 2e-02, eta: 8:03:50, time: 0.579, data_time: 0.134, memory: 8, loss: 0.71\n"
        "2031-05-03 20:02:40,000 - mmdet - INFO - Epoch [1][100/730]\tlr: 2e-02, eta: 1 day, 8:03:20, time: 0.5, data_time: 0.1, memory: 8, loss: 0.7\n"
        "2031-05-03 20:09:00,000 - mmdet - INFO - Epoch(val) [1][730]\tbbox_mAP: 0.2\n",
        100,
        8760,
        40.0,
    ),
    Shape(
        "mmengine_text",
        "train_cfg = dict(by_epoch=True, max_epochs=3, val_interval=1)\n"
        "07/03 13:04:00 - mmengine - INFO - Epoch(train)  [1][ 10/196]  lr: 3.3e-04  eta: 0:13:14  time: 0.4073  data_time: 0.0335  memory: 970  loss: 6.18\n"
        "07/03 13:04:30 - mmengine - INFO - Epoch(train)  [1][ 20/196]  lr: 3.3e-04  eta: 0:13:04  time: 0.4073  data_time: 0.0335  memory: 970  loss: 6.08\n"
        "07/03 13:04:31 - mmengine - INFO - Epoch(val)  [1][5/5]  accuracy/top1: 2.0  data_time: 0.0335  time: 0.1\n",
        20,
        588,
        30.0,
    ),
    Shape(
        "detectron2_text",
        "  MAX_ITER: 1000\n"
        "[12/31 23:59:40 d2.utils.events]: eta: 0:05:00  iter: 19  total_loss: 1.1  loss_cls: 0.1  time: 0.6797  data_time: 0.1221  lr: 0.00025  max_mem: 4988M\n"
        "[01/01 00:00:10 d2.utils.events]: eta: 0:04:30  iter: 39  total_loss: 1.0  loss_cls: 0.1  time: 0.6797  data_time: 0.1221  lr: 0.00025  max_mem: 4988M\n",
        40,
        1000,
        30.0,
    ),
    Shape(
        "maskrcnn_benchmark",
        " 0: MAX_ITER: 400\n"
        " 0: 2031-05-19 21:43:45,000 maskrcnn_benchmark.trainer INFO: eta: 0:37:03  iter: 50  time: 0.0429 (0.0557)  data: 0.0001 (0.0034)  loss: 1.1976 (2.4335)\n"
        " 0: 2031-05-19 21:43:50,000 maskrcnn_benchmark.trainer INFO: eta: 0:32:39  iter: 100  time: 0.0425 (0.0491)  data: 0.0001 (0.0025)  loss: 1.4979 (1.8908)\n",
        100,
        400,
        5.0,
    ),
    Shape(
        "basicsr",
        "    niter: 600000\n31-05-05 21:26:00.000 - INFO: [epoch:  0, iter:     900, lr:(2.000e-04,)] l_pix: 2.9e+05 \n"
        "31-05-05 21:27:00.000 - INFO: [epoch:  0, iter:   1,000, lr:(2.000e-04,)] l_pix: 1.1e+05 \n",
        1000,
        600000,
        60.0,
    ),
    Shape(
        "pix2pix",
        "(epoch: 1, iters: 100, time: 0.112, data: 2.622) G_GAN: 2.873 D_real: 0.071 \n"
        "(epoch: 1, iters: 200, time: 0.112, data: 0.001) G_GAN: 2.8 D_real: 0.071 \n"
        "End of epoch 1 / 20 \t Time Taken: 45 sec\n(epoch: 2, iters: 100, time: 0.112, data: 0.001) G_GAN: 2.7 D_real: 0.071 \n"
        "(epoch: 2, iters: 200, time: 0.112, data: 0.001) G_GAN: 2.6 D_real: 0.071 \nEnd of epoch 2 / 20 \t Time Taken: 43 sec\n",
        400,
        4000,
        88.0,
    ),
    Shape(
        "stylegan",
        "Training for 300 kimg...\n"
        "tick 0     kimg 0.0      time 45s          sec/tick 10.6    sec/kimg 1326.39 maintenance 34.6   cpumem 4.76\n"
        "tick 1     kimg 4.0      time 13m 25s      sec/tick 291.6   sec/kimg 72.89   maintenance 468.3  cpumem 5.20\n"
        "tick 2     kimg 8.0      time 1d 03h 21m   sec/tick 292.8   sec/kimg 73.19   maintenance 0.1    cpumem 5.20\n",
        8,
        300,
        98460.0,
    ),
    Shape(
        "dtrb",
        "[1/3000] Train loss: 6.86867, Valid loss: 6.80481, Elapsed_time: 5.5\n[200/3000] Train loss: 4.7, Valid loss: 4.3, Elapsed_time: 440.5\n",
        200,
        3000,
        440.5,
    ),
    Shape(
        "gnmt",
        "0: TRAIN [0][0/40]\tTime 0.9 (1.0)\tData 1.81e-03 (1.91e-03)\tTok/s 306068 (369078)\n"
        "0: TRAIN [0][39/40]\tTime 0.007 (0.5)\tData 1.81e-03 (1.91e-03)\tTok/s 306068 (369078)\n0: VALIDATION [0][0/4]\tTime 1\n"
        "0: TRAIN [1][9/40]\tTime 0.007 (0.5)\tData 1.81e-03 (1.91e-03)\tTok/s 306068 (369078)\n",
        50,
        None,
        25.0,
    ),
    Shape(
        "megatron",
        " [2031-04-27 00:00:01] iteration        1/     300 | consumed samples:   2 | elapsed time per iteration (ms): 4000.0 | global batch size:     2 | lm loss: 3.0E+00 |\n"
        " [2031-04-27 00:00:05] iteration        2/     300 | consumed samples:   4 | elapsed time per iteration (ms): 4000.0 | global batch size:     2 | lm loss: 2.9E+00 |\n"
        " validation loss at iteration 2 | lm loss value: 7.4E+00 |\n",
        2,
        300,
        4.0,
    ),
    Shape(
        "deepspeed",
        "Beginning of Epoch 1/2, Total Micro Batches 40\n"
        "[2031-11-07 01:55:00,000] [INFO] [timer.py:260:stop] epoch=0/micro_step=10/global_step=10, RunningAvgSamplesPerSec=25.02, CurrSamplesPerSec=25.70, MemAllocated=4.32GB\n"
        "[2031-11-07 01:55:30,500] [INFO] [timer.py:260:stop] epoch=0/micro_step=20/global_step=20, RunningAvgSamplesPerSec=25.02, CurrSamplesPerSec=25.70, MemAllocated=4.32GB\n",
        20,
        80,
        30.5,
    ),
    Shape(
        "fairseq_simple",
        "2031-06-13 17:31:00 | INFO | fairseq_cli.train | max_epoch=5\n"
        "2031-06-13 17:31:00 | INFO | train_inner | epoch 001:     40 / 282 loss=3.147, wps=72384.3, ups=1.21, num_updates=39, train_wall=48, wall=0\n"
        "2031-06-13 17:31:50 | INFO | train_inner | epoch 001:     80 / 282 loss=3.047, wps=72384.3, ups=1.21, num_updates=79, train_wall=48, wall=0\n",
        80,
        1410,
        50.0,
    ),
    Shape(
        "fairseq_json",
        "[2031-04-08 18:40:00,000][fairseq_cli.train][INFO] - {'max_update': 4000, 'x': 1}\n"
        '[2031-04-08 18:48:00,000][train_inner][INFO] - {"epoch": 1, "update": 0.416, "loss": "9.276", "num_updates": "200", "wall": "425"}\n'
        '[2031-04-08 18:54:00,000][train_inner][INFO] - {"epoch": 1, "update": 0.832, "loss": "6.961", "num_updates": "400", "wall": "785"}\n',
        400,
        4000,
        840.0,
    ),
    Shape(
        "torchtitan",
        "[rank0]:[titan] 2031-04-27 16:43:20,000 - root - INFO - Trainer is initialized with local batch size 3, total steps 12500 (warmup 500)\n"
        "[rank0]:[titan] 2031-04-27 16:43:50,000 - root - INFO - \x1b[31mstep:  1  \x1b[32mloss: 12.23542  \x1b[34mgrad_norm:  0.4601  memory: 23.77GiB(75.82%)  tps: 1,601  mfu: 3.18%\x1b[39m\n"
        "[rank0]:[titan] 2031-04-27 16:44:00,000 - root - INFO - \x1b[33mvalidate step:  1  \x1b[32mloss: 12.2336  memory: 23.77GiB(75.82%)  tps: 7,228\x1b[39m\n"
        "[rank0]:[titan] 2031-04-27 16:45:50,000 - root - INFO - \x1b[31mstep: 10  \x1b[32mloss: 11.73954  \x1b[34mgrad_norm:  0.7114  memory: 26.01GiB(82.96%)  tps: 3,235  mfu: 6.43%\x1b[39m\n",
        10,
        12500,
        150.0,
    ),
    Shape(
        "nanogpt",
        "max_iters = 5000\nstep 0: train loss 6.1854, val loss 6.1780\niter 0: loss 6.1551, time 3000.00ms, mfu -100.00%\n"
        "iter 10: loss 5.1, time 100.00ms, mfu 5.00%\niter 20: loss 4.1, time 100.00ms, mfu 5.00%\n"
        "step 30: train loss 4.0, val loss 4.2\niter 30: loss 4.0, time 5000.00ms, mfu 5.00%\n",
        31,
        5000,
        3.0 + 1.0 + 1.0 + 5.9,
    ),
    Shape(
        "llm.c",
        "step 1/195 | loss 11.0 (+nanz)| norm 15.3 (+nanz)| lr 3.97e-04 | 3500.00 ms | 36.9% bf16 MFU | 142587 tok/s\n"
        "val loss 10.9\nstep 2/195 | loss 10.9 (+nanz)| norm 15.2 (+nanz)| lr 3.97e-04 | 3000.00 ms | 36.9% bf16 MFU | 142587 tok/s\n",
        2,
        195,
        6.5,
    ),
    Shape(
        "modded_nanogpt",
        '        print0(f"step:{step}/{train_steps} train_time:{training_time_ms:.0f}ms")\nstep:0/1547 val_loss:10.8 train_time:0ms step_avg:0.03ms\n'
        "step:1/1547 train_loss:9.5 train_time:92ms step_avg:92.23ms\nstep:2/1547 train_loss:9.4 train_time:150ms step_avg:57.20ms\n",
        2,
        1547,
        0.15,
    ),
    Shape(
        "olmo",
        "2031-12-21 13:31:00.000\thost:0\tolmo.train:990\tINFO\t[step=10/1000,epoch=0]\n    train/CrossEntropyLoss=5.882\n"
        "2031-12-21 13:31:06.500\thost:0\tolmo.train:990\tINFO\t[step=20/1000,epoch=0]\n",
        20,
        1000,
        6.5,
    ),
    Shape(
        "nemo",
        "Training epoch 0, iteration 0/99 | lr: 0.0001 | global_batch_size: 512 | global_step: 0 | reduced_train_loss: 11.03 | train_step_timing in s: 9.5\n"
        "Training epoch 0, iteration 1/99 | lr: 0.0001 | global_batch_size: 512 | global_step: 1 | reduced_train_loss: 11.01 | train_step_timing in s: 4.5\n",
        2,
        100,
        14.0,
    ),
    Shape(
        "sockeye",
        "[2031-12-17:20:05:00:INFO:sockeye.training:__call__] E=0 B=50\ts/sec=497.05 tok/sec=14941.30 u/sec=2.73\tppl=3929.8\n"
        "[2031-12-17:20:05:51:INFO:sockeye.training:__call__] E=0 B=100\ts/sec=903.82 tok/sec=24891.60 u/sec=4.33\tppl=788.9\n",
        100,
        None,
        51.0,
    ),
    Shape(
        "joeynmt",
        "2031-12-16 12:55:00,000 - INFO - joeynmt.training - Epoch   1, Step:     1000, Batch Loss:     2.264120, Tokens per Sec:     6120, Lr: 0.000017\n"
        "2031-12-16 12:57:00,000 - INFO - joeynmt.training - Epoch   1, Step:     2000, Batch Loss:     1.602307, Tokens per Sec:     6106, Lr: 0.000017\n",
        2000,
        None,
        120.0,
    ),
    Shape(
        "opennmt",
        "[2031-01-01 10:00:00,000 INFO] Step 50/ 1000; acc:   4.36; ppl: 10000.50; xent: 9.21; lr: 0.00001; 1000/1200 tok/s;     30 sec\n"
        "[2031-01-01 10:00:28,000 INFO] Step 100/ 1000; acc:   5.36; ppl: 9000.50; xent: 9.11; lr: 0.00001; 1000/1200 tok/s;     58 sec\n",
        100,
        1000,
        28.0,
    ),
    Shape(
        "flair",
        '2031-02-20 11:56:00,000  - max_epochs: "20"\n2031-02-20 11:59:00,000 epoch 1 - iter 50/504 - loss 0.84988712 - samples/sec: 9.54 - lr: 0.000005\n'
        "2031-02-20 12:03:00,000 epoch 1 - iter 100/504 - loss 0.64131590 - samples/sec: 9.71 - lr: 0.000005\n",
        100,
        10080,
        420.0,
    ),
    Shape(
        "tacotron",
        "[2031-01-22 01:40:00.000]  Step 50      [1.986 sec/step, loss=0.99249, avg_loss=1.07273]\n"
        "[2031-01-22 01:41:10.500]  Step 100     [1.720 sec/step, loss=0.61615, avg_loss=0.93914]\n",
        100,
        None,
        70.5,
    ),
    Shape(
        "composer",
        "[batch=1/100]:\n\t Train time/batch: 0\n\t Train loss/train/total: 11.2\n[batch=2/100]:\n\t Train time/batch: 1\n\t Train loss/train/total: 11.0\n",
        2,
        100,
    ),
    Shape(
        "jax",
        "completed step: 0, seconds: 20.5, TFLOP/s/device: 1.2, Tokens/s/device: 200, total_weights: 99, loss: 10.8\n"
        "completed step: 1, seconds: 0.5, TFLOP/s/device: 100.2, Tokens/s/device: 2000, total_weights: 99, loss: 10.7\n",
        2,
        None,
        21.0,
    ),
    Shape(
        "mxnet_speedometer",
        "INFO:root:Epoch[0] Batch [50]\tSpeed: 100.00 samples/sec\taccuracy=0.01\nINFO:root:Epoch[0] Batch [100]\tSpeed: 100.00 samples/sec\taccuracy=0.01\n"
        "INFO:root:Epoch[0] Time cost=30.5\nINFO:root:Epoch[0] Validation-accuracy=0.1\n"
        "INFO:root:Epoch[1] Batch [50]\tSpeed: 100.00 samples/sec\taccuracy=0.02\nINFO:root:Epoch[1] Batch [100]\tSpeed: 100.00 samples/sec\taccuracy=0.02\n"
        "INFO:root:Epoch[1] Time cost=30.0\n",
        200,
        None,
        61.0,  # reckoned from the speed; that the epoch took half a second less is known only now
    ),
    Shape(
        "gluon_classification",
        "Namespace(batch_size=32, num_epochs=14, lr=0.1)\nEpoch[0] Batch [49]\tSpeed: 849.9 samples/sec\tloss=0.001\tlr=0.001\n"
        "Epoch[0] Batch [99]\tSpeed: 849.9 samples/sec\tloss=0.001\tlr=0.001\nEpoch[0]\t\tSpeed: 1296 samples/sec over 115 secs\tloss=0.0004\n"
        "Epoch[1] Batch [49]\tSpeed: 849.9 samples/sec\tloss=0.001\tlr=0.001\n"
        "Epoch[1] Batch [99]\tSpeed: 849.9 samples/sec\tloss=0.001\tlr=0.001\nEpoch[1]\t\tSpeed: 1296 samples/sec over 110 secs\tloss=0.0004\n",
        200,
        1400,
        230.0,
    ),
    Shape(
        "gluon_detection",
        "Namespace(batch_size=32, epochs=24, lr=0.1)\n[Epoch 0][Batch 99], Speed: 71.5 samples/sec, CrossEntropy=7.8\n"
        "[Epoch 0][Batch 199], Speed: 70.6 samples/sec, CrossEntropy=6.4\n[Epoch 0] Training cost: 245.5, CrossEntropy=5.3\n",
        200,
        None,
        245.5,
    ),
    Shape(
        "gluon_epoch_only",
        "INFO:root:Namespace(batch_size=128, num_epochs=22)\nINFO:root:[Epoch 0] train=0.2 val=0.4 loss=1.9 time: 62.5\n"
        "INFO:root:[Epoch 1] train=0.3 val=0.5 loss=1.8 time: 60.0\n",
        2,
        22,
        122.5,
    ),
    Shape(
        "gluonnlp_ts",
        "2031-06-26 18:32:00,000 - root - Namespace(batch_size=4, epochs=4, x=1)\n"
        "2031-06-26 18:32:47,000 - root - [Epoch 0 Batch 800/3406] loss=2.9759, ppl=19.6071, throughput=61.20K wps, wc=6520.84K\n"
        "2031-06-26 18:34:47,000 - root - [Epoch 0 Batch 1600/3406] loss=2.9857, ppl=19.8004, throughput=60.58K wps, wc=6519.59K\n",
        1600,
        13624,
        167.0,
    ),
    Shape(
        "gluonnlp_step_time",
        "INFO:root:Namespace(num_steps=10000, x=1)\nINFO:root:[step 249]\tmlm_loss=9.2\tmlm_acc=5.0\tthroughput=122.0K tks/s\tlr=0.0000025 time=163.5\n"
        "INFO:root:[step 499]\tmlm_loss=9.0\tmlm_acc=5.0\tthroughput=122.0K tks/s\tlr=0.0000025 time=160.0\n",
        500,
        10000,
        323.5,
    ),
    Shape(
        "ppdet",
        "[08/02 06:15:00] ppdet.engine INFO: Epoch: [0] [  0/464] learning_rate: 0.000000 loss_bbox: 0.68 loss: 2.17 eta: 5:00:00 batch_cost: 2.5 data_cost: 0.5 ips: 1.6 images/s\n"
        "[08/02 06:17:00] ppdet.engine INFO: Epoch: [0] [200/464] learning_rate: 0.000010 loss_bbox: 0.57 loss: 1.69 eta: 4:50:00 batch_cost: 0.5 data_cost: 0.1 ips: 7.6 images/s\n"
        "[08/02 06:19:32] ppdet.engine INFO: Eval iter: 0\n",
        201,
        None,
        120.0,
    ),
    Shape(
        "paddlevideo",
        "[12/25 14:22:40] epoch:[  1/25 ] train step:0    loss: 4.97011 lr: 0.010000 top1: 0.01562 batch_cost: 7.44212 sec, reader_cost: 7.01723 sec, ips: 8.59970 instance/sec.\n"
        "[12/25 14:24:40] epoch:[  1/25 ] train step:100  loss: 3.45068 lr: 0.010000 top1: 0.23438 batch_cost: 1.94236 sec, reader_cost: 1.53779 sec, ips: 32.94963 instance/sec.\n",
        101,
        None,
        120.0,
    ),
    Shape(
        "paddle",
        "2031-01-01 10:00:00 [INFO]\t[TRAIN] epoch: 1, iter: 10/1000, loss: 0.5, lr: 0.01, batch_cost: 0.2, reader_cost: 0.01, ips: 20 samples/sec | ETA 00:03:18\n"
        "2031-01-01 10:00:02 [INFO]\t[TRAIN] epoch: 1, iter: 20/1000, loss: 0.5, lr: 0.01, batch_cost: 0.2, reader_cost: 0.01, ips: 20 samples/sec | ETA 00:03:16\n",
        20,
        1000,
        2.0,
    ),
    Shape(
        "dllogger_text",
        "DLL 2031-05-16 22:45:02.330823 - PARAMETER | epochs :  80\n"
        "DLL 2031-05-16 22:46:00.000000 - epoch    1 | avg train utts/s  6676 | took 41.65 s\nDLL 2031-05-16 22:46:01.000000 - epoch    1 |   dev ema wer 953.78 | took  1.25 s\n"
        "DLL 2031-05-16 22:46:42.000000 - epoch    2 | avg train utts/s  6676 | took 41.65 s\n",
        2,
        80,
        99.669,
    ),
    Shape(
        "tqdm",
        "\r".join(
            [bar("Map: ", 9, 9, "00:01"), bar("Downloading: ", 3, 9, "00:01", rate="3.1MB/s")]
            + [bar("Iteration: ", n, 40, f"00:{n // 2:02d}") for n in range(0, 21, 2)]
        ),
        20,
        40,
        10.0,
    ),
    Shape(
        "lightning",
        "\r".join(
            [bar("Sanity Checking DataLoader 0: ", 2, 2, "00:00")]
            + [bar("Epoch 0: ", n, 10, f"00:{n:02d}").replace("it/s]", "it/s, v_num=2, loss=0.4]") for n in range(11)]
            + [bar("Validation DataLoader 0: ", 1, 3, "00:01")]
            + [bar("Epoch 1: ", n, 10, f"00:{n:02d}").replace("it/s]", "it/s, v_num=2, loss=0.3]") for n in range(6)]
        ),
        15,
        None,
        15.0,
    ),
    Shape(
        "hf_tqdm",
        "  Total optimization steps = 40\n"
        + "\r".join(bar("", n, 40, f"00:{n // 2:02d}") for n in range(0, 11, 2))
        + "{'loss': 51.1, 'grad_norm': 1.0, 'learning_rate': 0.0, 'epoch': 0.25}\n"
        + "\r".join(bar("", n, 5, "00:00") for n in range(5))
        + "\n"
        + bar("", 12, 40, "00:06"),
        12,
        40,
        6.0,
    ),
    Shape(
        "yolo_console",
        "Starting training for 3 epochs...\n"
        + "\r".join(bar("        0/2       11G    0.0154     117       640: ", n, 8, f"00:{n:02d}") for n in range(9))
        + "\n"
        + bar("                 Class      Images   P   R  mAP@.5: ", 2, 2, "00:01")
        + "\n"
        + "\r".join(bar("        1/2       11G    0.0154     117       640: ", n, 8, f"00:{n:02d}") for n in range(5)),
        12,
        24,
        13.0,
    ),
    Shape(
        "hf_dict",
        "  Num Epochs = 10\n  Total optimization steps = 400\n{'loss': 51.1, 'grad_norm': 1.0, 'learning_rate': 0.0, 'epoch': 1.0}\n"
        "{'eval_loss': 4.8, 'eval_runtime': 103.6, 'epoch': 1.0}\n{'loss': '41.1', 'grad_norm': '1.0', 'epoch': '2.5'}\n",
        100,
        400,
    ),
    Shape(
        "mllog",
        "".join(
            f'0: :::MLLOG {{"namespace": "", "time_ms": 19146805{n}1000, "event_type": "POINT_IN_TIME", "key": "train_loss", '
            f'"value": 3.5, "metadata": {{"file": "a.py", "lineno": 9, "step_num": {n}00}}}}\n'
            for n in range(1, 8)
        ),
        700,
        None,
        60.0,
    ),
    Shape(
        "detectron2_json",
        '{"data_time": 0.002, "eta_seconds": 59.75, "iteration": 19, "loss_cls": 0.7, "lr": 1.6e-05, "time": 0.5, "total_loss": 1.7}\n'
        '{"data_time": 0.002, "eta_seconds": 55.75, "iteration": 39, "loss_cls": 0.7, "lr": 1.6e-05, "time": 0.25, "total_loss": 1.6}\n',
        40,
        None,
        15.0,
    ),
    Shape(
        "mmcv_json",
        '{"env_info": "linux", "config": "lr = 1\\ntotal_epochs = 12\\nx = 1"}\n'
        '{"mode": "train", "epoch": 1, "iter": 50, "lr": 0.00198, "memory": 42, "data_time": 0.19, "loss": 2.39573, "time": 0.5}\n'
        '{"mode": "train", "epoch": 1, "iter": 100, "lr": 0.00198, "memory": 42, "data_time": 0.19, "loss": 2.3, "time": 0.25}\n'
        '{"mode": "val", "epoch": 1, "iter": 100, "lr": 0.0002, "bbox_mAP": 0.378}\n'
        '{"mode": "train", "epoch": 2, "iter": 50, "lr": 0.00198, "memory": 42, "data_time": 0.19, "loss": 2.2, "time": 0.25}\n',
        150,
        1200,
        50.0,
    ),
    Shape(
        "mmengine_json",
        '{"lr": 0.001, "data_time": 0.0005, "loss": 1.49, "time": 2.0, "epoch": 1, "iter": 12, "memory": 6073, "step": 12}\n'
        '{"accuracy/top1": 73.0, "data_time": 0.38, "time": 0.5, "step": 1}\n'
        '{"lr": 0.001, "data_time": 0.0005, "loss": 1.39, "time": 2.5, "epoch": 2, "iter": 24, "memory": 6073, "step": 24}\n',
        24,
        None,
        54.0,
    ),
    Shape(
        "dllogger_json",
        'DLLL {"timestamp": "1987450966.25", "datetime": "x", "elapsedtime": "0.0", "type": "LOG", "step": "PARAMETER", "data": {"max_steps": 90}}\n'
        'DLLL {"timestamp": "1987450976.25", "datetime": "x", "elapsedtime": "8.2", "type": "LOG", "step": [0, 0], "data": {"step_loss": 2.3}}\n'
        'DLLL {"timestamp": "1987450986.75", "datetime": "x", "elapsedtime": "8.2", "type": "LOG", "step": [0, 1], "data": {"step_loss": 2.2}}\n',
        2,
        90,
        20.5,
    ),
    Shape(
        "torch7_json_stats",
        'json_stats: {"batchSize":128,"train_time":55.5,"max_epoch":200,"epoch":1,"test_time":3.5,"loss":0.7}\t\n'
        'json_stats: {"batchSize":128,"train_time":50.0,"max_epoch":200,"epoch":2,"test_time":3.0,"loss":0.6}\t\n',
        2,
        200,
        112.0,
    ),
    Shape(
        "trainer_state",
        '{\n  "best_metric": 0.7,\n  "global_step": 50,\n  "log_history": [\n    {\n      "epoch": 0.19,\n      "learning_rate": 4.6e-07,\n'
        '      "loss": 0.3048,\n      "step": 25\n    },\n    {\n      "epoch": 0.38,\n      "learning_rate": 9.6e-07,\n      "lr": 9.6e-07,\n      "loss": 0.2,\n'
        '      "step": 50\n    }\n  ],\n  "max_steps": 5000,\n  "num_train_epochs": 39\n}\n',
        50,
        5000,
    ),
    Shape(
        "chainer_json",
        '[\n    {\n        "epoch": 0,\n        "elapsed_time": 29.5,\n        "main/loss": 1.4,\n        "iteration": 100\n    },\n'
        '    {\n        "epoch": 0,\n        "elapsed_time": 57.5,\n        "main/loss": 1.0,\n        "iteration": 200\n    }\n]\n',
        200,
        None,
        57.5,
    ),
    Shape(
        "jsonl",
        "".join(
            f'{{"step": {n}0, "total_steps": 500, "loss": 0.5, "timestamp": 19000000{n}0.5}}\n' for n in range(1, 9)
        ),
        80,
        500,
        70.0,
    ),
    Shape(
        "epochcast",
        '{"epochcast_track": 1, "job": "mine", "attempt": 7, "at": 1900000000.0, "rank": 0, "ranks": 1, "total_steps": 90}\n'
        + "".join(
            f'{{"ec": "train", "step": {n}0, "at": 190000000{n}.5, "steps": 10, "step_seconds": 0.1}}\n' for n in (1, 2)
        )
        + '{"ec": "begin", "step": 20, "at": 1900000003.0, "what": "validation"}\n'
        '{"ec": "done", "step": 20, "at": 1900000004.0, "what": "validation", "seconds": 1.0}\n'
        '{"epochcast_track": 1, "job": "mine", "attempt": 8, "at": 1900000005.0, "start_step": 20, "total_steps": 90}\n'
        + '{"ec": "train", "step": 30, "at": 1900000006.5, "steps": 10, "step_seconds": 0.1}\n{"ec": "train", "st',
        30,
        90,
        6.5,
        attempts=2,
    ),
    Shape("csv_no_time", "epoch,acc,loss,val_acc\r\n" + "".join(f"{n},0.5,1.5,0.6\r\n" for n in range(8)), 8),
    Shape(
        "ultralytics_csv",
        "epoch,time,train/box_loss,metrics/mAP50(B),lr/pg0\n"
        + "".join(f"{n},{n * 30.5},1.5,0.3,0.0002\n" for n in range(1, 9)),
        8,
        None,
        244.0,
    ),
    Shape(
        "python_logging",
        "".join(
            f"2031-06-12 13:31:{n:02d},000 - INFO - Epoch: [ 0/20] Iter [  {n}0/1487] || Time: 3.7 sec || Loss: 2.3\n"
            for n in range(1, 16)
        ),
        150,
        29740,
        14.0,
    ),
)
