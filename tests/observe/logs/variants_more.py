"""More of the same, as the libraries' own logging code prints it: other versions, launchers, loggers, colours."""

from tests.observe.logs.shapes import Shape

MORE = (
    Shape(  # caffe
        "caffe",
        "I0101 10:00:00.0 5 solver.cpp:60] max_iter: 450000\n"
        "I0101 10:01:00.000000  5 solver.cpp:314]     [0.0] Iteration 100 (9.4 iter/s, 10.6s/100 iter), 1.2/90ep, loss = 6.9\n"
        "I0101 10:02:00.000000  5 solver.cpp:314]     [0.0] Iteration 200 (9.4 iter/s, 10.6s/100 iter), 1.2/90ep, loss = 6.9\n"
        "I0101 10:03:00.000000  5 solver.cpp:314]     [0.0] Iteration 300 (9.4 iter/s, 10.6s/100 iter), 1.2/90ep, loss = 6.9\n",
        300,
        450000,
        180.0,
    ),
    Shape(  # caffe mpi
        "caffe",
        "[1,0]<stderr>:I0101 10:01:00.000000  5 solver.cpp:243] Iteration 100, loss = 6.9\n"
        "[1,0]<stderr>:I0101 10:02:00.000000  5 solver.cpp:243] Iteration 200, loss = 6.9\n"
        "[1,0]<stderr>:I0101 10:03:00.000000  5 solver.cpp:243] Iteration 300, loss = 6.9\n",
        300,
        None,
        120.0,
    ),
    Shape(  # tf1 hooks
        "tf1_estimator",
        "I0405 10:01:00.1 1400 basic_session_run_hooks.py:260] loss = 0.5, step = 100 (60.0 sec)\n"
        "I0405 10:02:00.1 1400 basic_session_run_hooks.py:260] loss = 0.5, step = 200 (60.0 sec)\n"
        "I0405 10:03:00.1 1400 basic_session_run_hooks.py:260] loss = 0.5, step = 300 (60.0 sec)\n",
        300,
        None,
        120.0,
    ),
    Shape(  # tf1 global
        "tf1_estimator",
        "INFO:tensorflow:global_step/sec: 2.5\n"
        "INFO:tensorflow:loss = 1.5, step = 100 (40.000 sec)\n"
        "INFO:tensorflow:global_step/sec: 2.5\n"
        "INFO:tensorflow:loss = 1.5, step = 200 (40.000 sec)\n"
        "INFO:tensorflow:global_step/sec: 2.5\n"
        "INFO:tensorflow:loss = 1.5, step = 300 (40.000 sec)\n",
        300,
        None,
        120.0,
    ),
    Shape(  # tf1 slim
        "tf1_estimator",
        "INFO:tensorflow:global step 10: loss = 2.5 (0.5 sec/step)\n"
        "INFO:tensorflow:global step 20: loss = 2.5 (0.5 sec/step)\n"
        "INFO:tensorflow:global step 30: loss = 2.5 (0.5 sec/step)\n",
        30,
        None,
        15.0,
    ),
    Shape(  # tf1 cifar
        "tf1_estimator",
        "2017-05-01 10:00:10.0: step 0, loss = 4.68 (1195.1 examples/sec; 0.107 sec/batch)\n"
        "2017-05-01 10:00:20.0: step 10, loss = 4.68 (1195.1 examples/sec; 0.107 sec/batch)\n"
        "2017-05-01 10:00:30.0: step 20, loss = 4.68 (1195.1 examples/sec; 0.107 sec/batch)\n",
        20,
        None,
        20.0,
    ),
    Shape(  # tf_cnn
        "tf_cnn_benchmarks",
        "Num batches:  100\n"
        "Num epochs:   0.01\n"
        "Step\tImg/sec\ttotal_loss\n"
        "1\timages/sec: 201.3 +/- 0.4 (jitter = 1.2)\t7.9\n"
        "10\timages/sec: 201.3 +/- 0.4 (jitter = 1.2)\t7.9\n"
        "20\timages/sec: 201.3 +/- 0.4 (jitter = 1.2)\t7.9\n",
        20,
        100,
        None,
    ),
    Shape(  # tf_cnn top
        "tf_cnn_benchmarks",
        "Num batches:  100\n"
        "1\timages/sec: 201.3 +/- 0.4 (jitter = 1.2)\t7.9\t0.001\t0.005\n"
        "10\timages/sec: 201.3 +/- 0.4 (jitter = 1.2)\t7.9\t0.001\t0.005\n"
        "20\timages/sec: 201.3 +/- 0.4 (jitter = 1.2)\t7.9\t0.001\t0.005\n",
        20,
        100,
        None,
    ),
    Shape(  # tf2 timehist
        "tf2",
        "I1101 10:00:10.0 5 keras_utils.py:145] TimeHistory: 10.00 seconds, 456.7 examples/second between steps 0 and 100\n"
        "I1101 10:00:20.0 5 keras_utils.py:145] TimeHistory: 10.00 seconds, 456.7 examples/second between steps 100 and 200\n",
        200,
        None,
        10.0,
    ),
    Shape(  # tf2 ctl
        "tf2",
        "train | step:    100 | steps/sec:    3.1 | output: \n"
        "    {'train_loss': 2.3}\n"
        "train | step:    200 | steps/sec:    3.1 | output: \n"
        "    {'train_loss': 2.3}\n"
        "train | step:    300 | steps/sec:    3.1 | output: \n"
        "    {'train_loss': 2.3}\n",
        300,
        None,
        96.7741935483871,
    ),
    Shape(  # tf2 ctl logging
        "tf2",
        "I0101 10:00:10.0 140 controller.py:476] train | step:  100 | steps/sec:   10.0 | output: {'loss': 0.5}\n"
        "I0101 10:00:20.0 140 controller.py:476] train | step:  200 | steps/sec:   10.0 | output: {'loss': 0.5}\n",
        200,
        None,
        10.0,
    ),
    Shape(  # keras2 eta
        "keras_bar",
        "Epoch 1/2\n\r"
        " 1/100 [=>....] - ETA: 99s - loss: 0.5 - acc: 0.9\r"
        " 50/100 [=>....] - ETA: 50s - loss: 0.5 - acc: 0.9\r"
        " 99/100 [=>....] - ETA: 1s - loss: 0.5 - acc: 0.9\r"
        "100/100 [====] - 101s 1s/step - loss: 0.4 - acc: 0.9 - val_loss: 0.3\n"
        "Epoch 2/2\n\r"
        " 50/100 [==>...] - ETA: 50s - loss: 0.3",
        150,
        200,
        151.0,
    ),
    Shape(  # keras2 samples
        "keras_bar",
        "Train on 60000 samples, validate on 10000 samples\n"
        "Epoch 1/12\n"
        "  128/60000 [.....] - ETA: 3:33 - loss: 2.3\n"
        "60000/60000 [====] - 10s 170us/sample - loss: 0.2 - val_loss: 0.05\n"
        "Epoch 2/12\n"
        "60000/60000 [====] - 10s 170us/sample - loss: 0.1 - val_loss: 0.05\n",
        120000,
        720000,
        20.0,
    ),
    Shape(  # keras3 v2
        "keras_verbose2",
        "Epoch 1/3\n333/333 - 2s - 6ms/step - loss: 3.4982\nEpoch 2/3\n333/333 - 2s - 6ms/step - loss: 3.1\n",
        666,
        999,
        4.0,
    ),
    Shape(  # keras3 windows crlf
        "keras3",
        "Epoch 1/3\r\n"
        "\x1b[1m333/333\x1b[0m \x1b[32m━━━━━━━━━━━━━━━━━━━━\x1b[0m\x1b[37m\x1b[0m \x1b[1m20s\x1b[0m 60ms/step - loss: 3.4982 - val_loss: 3.2\r\n"
        "Epoch 2/3\r\n"
        "\x1b[1m333/333\x1b[0m \x1b[32m━━━━\x1b[0m \x1b[1m20s\x1b[0m 60ms/step - loss: 3.1 - val_loss: 3.0\r\n",
        666,
        999,
        40.0,
    ),
    Shape(  # keras csvlogger
        "csv_no_time",
        "epoch,accuracy,loss,val_accuracy,val_loss\n0,0.5,1.2,0.6,1.1\n1,0.6,1.0,0.6,1.0\n2,0.7,0.9,0.6,0.9\n",
        3,
        None,
        None,
    ),
    Shape(  # keras v2 old
        "keras_verbose2",
        "Epoch 1/3\n - 20s - loss: 0.3 - acc: 0.5\nEpoch 2/3\n - 21s - loss: 0.2 - acc: 0.6\n",
        2,
        3,
        41.0,
    ),
    Shape(  # pt imagenet old
        "pytorch_imagenet",
        "Epoch: [0][0/5005]\tTime 0.500 (0.500)\tData 0.000 (0.100)\tLoss 6.9 (7.0)\tPrec@1 0.0 (0.1)\tPrec@5 0.1 (0.2)\n"
        "Epoch: [0][10/5005]\tTime 0.500 (0.500)\tData 0.000 (0.100)\tLoss 6.9 (7.0)\tPrec@1 0.0 (0.1)\tPrec@5 0.1 (0.2)\n"
        "Epoch: [0][20/5005]\tTime 0.500 (0.500)\tData 0.000 (0.100)\tLoss 6.9 (7.0)\tPrec@1 0.0 (0.1)\tPrec@5 0.1 (0.2)\n",
        21,
        None,
        10.5,
    ),
    Shape(  # timm new
        "timm",
        "INFO:train:Train: 0 [   0/1251 (  0%)]  Loss: 6.9 (6.9)  Time: 0.500s, 2000.00/s  (0.500s, 2000.00/s)  LR: 1.0e-06  Data: 0.010 (0.030)\n"
        "INFO:train:Train: 0 [  50/1251 (  4%)]  Loss: 6.9 (6.9)  Time: 0.500s, 2000.00/s  (0.500s, 2000.00/s)  LR: 1.0e-06  Data: 0.010 (0.030)\n"
        "INFO:train:Train: 0 [ 100/1251 (  8%)]  Loss: 6.9 (6.9)  Time: 0.500s, 2000.00/s  (0.500s, 2000.00/s)  LR: 1.0e-06  Data: 0.010 (0.030)\n",
        101,
        None,
        50.5,
    ),
    Shape(  # timm 1.0
        "timm",
        "Scheduled epochs: 300. LR stepped per epoch.\n"
        "Train: 0 [   0/1251 (  0%)]  Loss:  6.93 (6.94)  Time: 0.500s,  512.00/s  (0.500s,  512.00/s)  LR: 1.000e-05  Data: 0.0 (0.0)\n"
        "Train: 0 [  50/1251 (  4%)]  Loss:  6.93 (6.94)  Time: 0.500s,  512.00/s  (0.500s,  512.00/s)  LR: 1.000e-05  Data: 0.0 (0.0)\n",
        51,
        375300,
        25.5,
    ),
    Shape(  # lightning tqdm
        "lightning",
        "Epoch 0:  10%|██ | 10/100 [00:10<01:10,  1.00it/s, v_num=0, train_loss=0.4]\r"
        "Epoch 0:  20%|██ | 20/100 [00:20<01:10,  1.00it/s, v_num=0, train_loss=0.4]\r"
        "Epoch 0:  30%|██ | 30/100 [00:30<01:10,  1.00it/s, v_num=0, train_loss=0.4]\r",
        30,
        None,
        30.0,
    ),
    Shape(  # lightning rich
        "lightning",
        "Epoch 0/9  ━━━━╺━━━ 10/100 0:00:10 • 0:01:10 1.00it/s v_num: 0.000 train_loss: 0.4\n"
        "Epoch 0/9  ━━━━╺━━━ 20/100 0:00:20 • 0:01:10 1.00it/s v_num: 0.000 train_loss: 0.4\n"
        "Epoch 0/9  ━━━━╺━━━ 30/100 0:00:30 • 0:01:10 1.00it/s v_num: 0.000 train_loss: 0.4\n",
        30,
        1000,
        30.0,
    ),
    Shape(  # lightning unknown it
        "lightning",
        "Epoch 0: : 10it [00:10, 1.00it/s, v_num=0, loss=0.5]\r"
        "Epoch 0: : 20it [00:20, 1.00it/s, v_num=0, loss=0.5]\r"
        "Epoch 0: : 30it [00:30, 1.00it/s, v_num=0, loss=0.5]\r",
        30,
        None,
        30.0,
    ),
    Shape(  # hf dict v5
        "hf_dict",
        "{'loss': '2.3', 'grad_norm': '1.0', 'learning_rate': '5e-05', 'epoch': '0.10'}\n"
        "{'loss': '2.3', 'grad_norm': '1.0', 'learning_rate': '5e-05', 'epoch': '0.20'}\n"
        "{'loss': '2.3', 'grad_norm': '1.0', 'learning_rate': '5e-05', 'epoch': '0.30'}\n"
        "{'train_runtime': '27172.2', 'train_samples_per_second': '0.887', 'train_loss': '1.2', 'epoch': '3'}\n",
        0.3,
        None,
        None,
    ),
    Shape(  # hf info
        "hf_tqdm",
        "[INFO|trainer.py:2134] 2024-05-01 10:00:00,100 >>   Num Epochs = 3\n"
        "[INFO|trainer.py:2140] 2024-05-01 10:00:00,101 >>   Total optimization steps = 300\n\r"
        " 3%|█         | 10/300 [00:10<04:50,  1.00it/s]\r"
        " 6%|█         | 20/300 [00:20<04:50,  1.00it/s]\r"
        " 10%|█         | 30/300 [00:30<04:50,  1.00it/s]",
        30,
        300,
        30.0,
    ),
    Shape(  # megatron
        "megatron",
        " [2026-04-27 00:00:04] iteration        1/     300 | consumed samples:   2 | elapsed time per iteration (ms): 4000.0 | learning rate: 1.000E-04 | global batch size:     2 | lm loss: 3.0E+00 | loss scale: 1.0 | grad norm: 1.0 | number of skipped iterations:   0 | number of nan iterations:   0 |\n"
        " [2026-04-27 00:00:08] iteration        2/     300 | consumed samples:   4 | elapsed time per iteration (ms): 4000.0 | learning rate: 1.000E-04 | global batch size:     2 | lm loss: 3.0E+00 | loss scale: 1.0 | grad norm: 1.0 | number of skipped iterations:   0 | number of nan iterations:   0 |\n"
        " [2026-04-27 00:00:12] iteration        3/     300 | consumed samples:   6 | elapsed time per iteration (ms): 4000.0 | learning rate: 1.000E-04 | global batch size:     2 | lm loss: 3.0E+00 | loss scale: 1.0 | grad norm: 1.0 | number of skipped iterations:   0 | number of nan iterations:   0 |\n",
        3,
        300,
        8.0,
    ),
    Shape(  # megatron tflops
        "megatron",
        " [2026-04-27 00:00:04] iteration        1/     300 | consumed samples:   2 | elapsed time per iteration (ms): 4000.0 | throughput per GPU (TFLOP/s/GPU): 300.1 | learning rate: 1.000E-04 | global batch size:     2 | lm loss: 3.0E+00 | loss scale: 1.0 | grad norm: 1.0 | number of skipped iterations:   0 | number of nan iterations:   0 |\n"
        " [2026-04-27 00:00:08] iteration        2/     300 | consumed samples:   4 | elapsed time per iteration (ms): 4000.0 | throughput per GPU (TFLOP/s/GPU): 300.1 | learning rate: 1.000E-04 | global batch size:     2 | lm loss: 3.0E+00 | loss scale: 1.0 | grad norm: 1.0 | number of skipped iterations:   0 | number of nan iterations:   0 |\n"
        " [2026-04-27 00:00:12] iteration        3/     300 | consumed samples:   6 | elapsed time per iteration (ms): 4000.0 | throughput per GPU (TFLOP/s/GPU): 300.1 | learning rate: 1.000E-04 | global batch size:     2 | lm loss: 3.0E+00 | loss scale: 1.0 | grad norm: 1.0 | number of skipped iterations:   0 | number of nan iterations:   0 |\n",
        3,
        300,
        8.0,
    ),
    Shape(  # megatron old
        "megatron",
        " iteration      100/     300 | elapsed time per iteration (ms): 4000.0 | learning rate: 1.0E-04 | lm loss: 3.0E+00 | loss scale: 1.0 |\n"
        " iteration      200/     300 | elapsed time per iteration (ms): 4000.0 | learning rate: 1.0E-04 | lm loss: 3.0E+00 | loss scale: 1.0 |\n",
        200,
        300,
        800.0,
    ),
    Shape(  # gpt-neox
        "megatron",
        " samples/sec: 10.0 | iteration      100/  320000 | elapsed time per iteration (ms): 3000.0 | learning rate: 1.0E-04 | approx flops per GPU: 40.0TFLOPS | lm_loss: 5.0E+00 | loss scale: 65536.0 |\n"
        " samples/sec: 10.0 | iteration      200/  320000 | elapsed time per iteration (ms): 3000.0 | learning rate: 1.0E-04 | approx flops per GPU: 40.0TFLOPS | lm_loss: 5.0E+00 | loss scale: 65536.0 |\n",
        200,
        320000,
        600.0,
    ),
    Shape(  # deepspeed new
        "deepspeed",
        "[2023-11-07 01:55:10,714] [INFO] [timer.py:260:stop] epoch=0/micro_step=40/global_step=10, RunningAvgSamplesPerSec=25.02, CurrSamplesPerSec=25.70, MemAllocated=4.32GB, MaxMemAllocated=6GB\n"
        "[2023-11-07 01:55:20,714] [INFO] [timer.py:260:stop] epoch=0/micro_step=80/global_step=20, RunningAvgSamplesPerSec=25.02, CurrSamplesPerSec=25.70, MemAllocated=4.32GB, MaxMemAllocated=6GB\n",
        20,
        None,
        10.0,
    ),
    Shape(  # deepspeed logging
        "deepspeed_step",
        "[2023-11-07 01:55:10,714] [INFO] [logging.py:96:log_dist] [Rank 0] step=10, skipped=0, lr=[1e-05], mom=[(0.9, 0.95)]\n"
        "[2023-11-07 01:55:20,714] [INFO] [logging.py:96:log_dist] [Rank 0] step=20, skipped=0, lr=[1e-05], mom=[(0.9, 0.95)]\n"
        "[2023-11-07 01:55:30,714] [INFO] [logging.py:96:log_dist] [Rank 0] step=30, skipped=0, lr=[1e-05], mom=[(0.9, 0.95)]\n",
        30,
        None,
        20.0,
    ),
    Shape(  # nemo tqdm
        "tqdm",
        "Epoch 0: :  10%|█ | 10/100 [00:10<01:00, 1.00it/s, reduced_train_loss=10.5, global_step=10.0, consumed_samples=256.0, train_step_timing in s=1.0]\r"
        "Epoch 0: :  20%|█ | 20/100 [00:20<01:00, 1.00it/s, reduced_train_loss=10.5, global_step=20.0, consumed_samples=256.0, train_step_timing in s=1.0]\r"
        "Epoch 0: :  30%|█ | 30/100 [00:30<01:00, 1.00it/s, reduced_train_loss=10.5, global_step=30.0, consumed_samples=256.0, train_step_timing in s=1.0]\r",
        30,
        None,
        30.0,
    ),
    Shape(  # nemo2
        "nemo",
        "Training epoch 0, iteration 0/99 | lr: 1e-5 | global_batch_size: 128 | global_step: 0 | max_memory_reserved: 1 | reduced_train_loss: 11.0 | train_step_timing in s: 2.0\n"
        "Training epoch 0, iteration 1/99 | lr: 1e-5 | global_batch_size: 128 | global_step: 1 | max_memory_reserved: 1 | reduced_train_loss: 11.0 | train_step_timing in s: 2.0\n"
        "Training epoch 0, iteration 2/99 | lr: 1e-5 | global_batch_size: 128 | global_step: 2 | max_memory_reserved: 1 | reduced_train_loss: 11.0 | train_step_timing in s: 2.0\n",
        3,
        100,
        6.0,
    ),
    Shape(  # fairseq
        "fairseq_simple",
        "2023-06-13 17:31:00 | INFO | fairseq_cli.train | {'optimization': {'max_epoch': 0, 'max_update': 50000}}\n"
        "2023-06-13 17:31:10 | INFO | train_inner | epoch 001:    10 / 282 loss=3.147, nll_loss=1.3, ppl=2.5, wps=72384.3, ups=1.21, wpb=100, bsz=10, num_updates=10, lr=1e-5, gnorm=1, train_wall=48, wall=0\n"
        "2023-06-13 17:31:20 | INFO | train_inner | epoch 001:    20 / 282 loss=3.147, nll_loss=1.3, ppl=2.5, wps=72384.3, ups=1.21, wpb=100, bsz=10, num_updates=20, lr=1e-5, gnorm=1, train_wall=48, wall=0\n",
        20,
        50000,
        20.0,
    ),
    Shape(  # fairseq tqdm
        "fairseq_simple",
        "\r"
        "epoch 001:  10%|█ | 10/100 [00:10<01:00,  1.00it/s, loss=9.0, ppl=500, wps=100, ups=1, num_updates=10, lr=1e-5]\r"
        "epoch 001:  20%|█ | 20/100 [00:20<01:00,  1.00it/s, loss=9.0, ppl=500, wps=100, ups=1, num_updates=20, lr=1e-5]\r"
        "epoch 001:  30%|█ | 30/100 [00:30<01:00,  1.00it/s, loss=9.0, ppl=500, wps=100, ups=1, num_updates=30, lr=1e-5]",
        30,
        None,
        30.0,
    ),
    Shape(  # fairseq old simple
        "fairseq_simple",
        "| epoch 001:    100 / 1000 loss=10.1, nll_loss=9.9, ppl=900, wps=2000, ups=1.0, wpb=3000, bsz=100, num_updates=101, lr=1e-7, gnorm=2, clip=0, oom=0, wall=105, train_wall=9\n"
        "| epoch 001:    200 / 1000 loss=10.1, nll_loss=9.9, ppl=900, wps=2000, ups=1.0, wpb=3000, bsz=100, num_updates=201, lr=1e-7, gnorm=2, clip=0, oom=0, wall=205, train_wall=9\n",
        200.0,
        None,
        205.0,
    ),
    Shape(  # torchtitan ansi
        "torchtitan",
        "[titan] 2024-10-01 10:00:10,123 - root - INFO - \x1b[31mstep: 10  \x1b[32mloss: 11.83  \x1b[33mmemory: 48.87GiB(51.44%)  \x1b[34mtps: 4,376  \x1b[36mtflops: 253.41  \x1b[35mmfu: 25.62%\x1b[39m\n"
        "[titan] 2024-10-01 10:00:20,123 - root - INFO - \x1b[31mstep: 20  \x1b[32mloss: 11.83  \x1b[33mmemory: 48.87GiB(51.44%)  \x1b[34mtps: 4,376  \x1b[36mtflops: 253.41  \x1b[35mmfu: 25.62%\x1b[39m\n",
        20,
        None,
        10.0,
    ),
    Shape(  # torchtitan wps
        "torchtitan",
        "2024 - root - INFO - Training starts at step 1, with local batch size 8, global batch size 64, sequence length 2048, total steps 1000 (warmup 200)\n"
        "[rank0]:2024-06-01 10:00:10,000 - root - INFO - step: 10  loss: 7.1  memory: 9GiB(10%)  wps: 1,234  mfu: 30%\n"
        "[rank0]:2024-06-01 10:00:20,000 - root - INFO - step: 20  loss: 7.1  memory: 9GiB(10%)  wps: 1,234  mfu: 30%\n",
        20,
        1000,
        10.0,
    ),
    Shape(  # nanogpt
        "nanogpt",
        "max_iters = 5000\n"
        "iter 0: loss 3.2, time 100.00ms, mfu 20.0%\n"
        "iter 10: loss 3.2, time 100.00ms, mfu 20.0%\n"
        "iter 20: loss 3.2, time 100.00ms, mfu 20.0%\n",
        21.0,
        5000,
        2.1,
    ),
    Shape(  # olmo
        "olmo",
        "2024-05-01 10:00:10.123 host:0 olmo.train:800 INFO [step=10/739328,epoch=0]\n"
        "    train/CrossEntropyLoss=2.3\n"
        "    throughput/total_tokens=1\n"
        "2024-05-01 10:00:20.123 host:0 olmo.train:800 INFO [step=20/739328,epoch=0]\n"
        "    train/CrossEntropyLoss=2.3\n"
        "    throughput/total_tokens=1\n",
        20,
        739328,
        10.0,
    ),
    Shape(  # olmo-core
        "olmo",
        "2024-11-01 10:00:10.0 h:0 olmo_core.train.callbacks.console_logger:66 INFO [step=10/1000,epoch=1,eta=1:02:03]\n"
        "    optim/LR=1e-5\n\n"
        "2024-11-01 10:00:20.0 h:0 olmo_core.train.callbacks.console_logger:66 INFO [step=20/1000,epoch=1,eta=1:02:03]\n"
        "    optim/LR=1e-5\n\n",
        20,
        1000,
        10.0,
    ),
    Shape(  # composer
        "composer",
        "[batch=1/100]:\n"
        "\t Train time/batch: 0\n"
        "\t Train loss/train/total: 7.0\n"
        "\t Train throughput/batches_per_sec: 1.0\n"
        "[batch=2/100]:\n"
        "\t Train time/batch: 1\n"
        "\t Train loss/train/total: 7.0\n"
        "\t Train throughput/batches_per_sec: 1.0\n"
        "[batch=3/100]:\n"
        "\t Train time/batch: 2\n"
        "\t Train loss/train/total: 7.0\n"
        "\t Train throughput/batches_per_sec: 1.0\n",
        3,
        100,
        None,
    ),
    Shape(  # composer epoch
        "composer",
        "[epoch=1/2][batch=1/100]:\n"
        "\t Train time/epoch: 0\n"
        "\t Train LanguageCrossEntropy: 7.0\n"
        "[epoch=1/2][batch=2/100]:\n"
        "\t Train time/epoch: 0\n"
        "\t Train LanguageCrossEntropy: 7.0\n"
        "[epoch=1/2][batch=3/100]:\n"
        "\t Train time/epoch: 0\n"
        "\t Train LanguageCrossEntropy: 7.0\n",
        103.0,
        200.0,
        None,
    ),
    Shape(  # composer2 dated
        "composer",
        "2024-05-01 10:00:01,000: rank0[123][MainThread]: INFO: composer.loggers.console_logger: [batch=1/100]:\n"
        "         Train loss/train/total: 7.0\n"
        "2024-05-01 10:00:02,000: rank0[123][MainThread]: INFO: composer.loggers.console_logger: [batch=2/100]:\n"
        "         Train loss/train/total: 7.0\n"
        "2024-05-01 10:00:03,000: rank0[123][MainThread]: INFO: composer.loggers.console_logger: [batch=3/100]:\n"
        "         Train loss/train/total: 7.0\n",
        3,
        100,
        2.0,
    ),
    Shape(  # stylegan3
        "stylegan",
        "Training for 25000 kimg...\n"
        "tick 0     kimg 0.1      time 1m 00s      sec/tick 60.0    sec/kimg 15.0    maintenance 5.0    cpumem 3.0    gpumem 20.0   reserved 21  augment 0.000\n"
        "tick 1     kimg 4.1      time 2m 05s      sec/tick 60.0    sec/kimg 15.0    maintenance 5.0    cpumem 3.0    gpumem 20.0   reserved 21  augment 0.000\n"
        "tick 2     kimg 8.1      time 3m 10s      sec/tick 60.0    sec/kimg 15.0    maintenance 5.0    cpumem 3.0    gpumem 20.0   reserved 21  augment 0.000\n",
        8.1,
        25000,
        190.0,
    ),
    Shape(  # stylegan1
        "stylegan",
        "tick 1     kimg 140.3      lod 5.00  minibatch 128  time 1m 00s      sec/tick 60.0    sec/kimg 0.5    maintenance 5.0    gpumem 4.0\n"
        "tick 2     kimg 280.6      lod 5.00  minibatch 128  time 2m 05s      sec/tick 60.0    sec/kimg 0.5    maintenance 5.0    gpumem 4.0\n",
        280.6,
        None,
        125.0,
    ),
    Shape(  # torch7 fb
        "torch7",
        " | Epoch: [1][1/5004]    Time 0.500  Data 0.001  Err 6.9  top1  99.0  top5  95.0\n"
        " | Epoch: [1][2/5004]    Time 0.500  Data 0.001  Err 6.9  top1  99.0  top5  95.0\n"
        " | Epoch: [1][3/5004]    Time 0.500  Data 0.001  Err 6.9  top1  99.0  top5  95.0\n",
        3,
        None,
        1.5,
    ),
    Shape(  # torch7 imagenet-multi
        "torch7",
        "Epoch: [1][1/10000]\tTime 0.500 Err 6.9 Top1-%: 0.1 LR 1e-2 DataLoadingTime 0.001\n"
        "Epoch: [1][2/10000]\tTime 0.500 Err 6.9 Top1-%: 0.1 LR 1e-2 DataLoadingTime 0.001\n"
        "Epoch: [1][3/10000]\tTime 0.500 Err 6.9 Top1-%: 0.1 LR 1e-2 DataLoadingTime 0.001\n",
        3,
        None,
        1.5,
    ),
    Shape(  # chainer text
        "chainer_text",
        "epoch       iteration   main/loss   main/accuracy  elapsed_time\n"
        "1           600         0.5   0.9     10.5\n"
        "2           1200         0.5   0.9     20.5\n"
        "3           1800         0.5   0.9     30.5\n",
        1800,
        None,
        30.5,
    ),
    Shape(  # chainer pb
        "chainer_bar",
        "     total [##########........................................] 20.00%\n"
        "this epoch [#####.............................................] 10.00%\n"
        "      100 iter, 0 epoch / 20 epochs\n"
        "    100.0 iters/sec. Estimated time to finish: 0:01:00.\n"
        "     total [##########........................................] 20.00%\n"
        "this epoch [#####.............................................] 10.00%\n"
        "      200 iter, 0 epoch / 20 epochs\n"
        "    100.0 iters/sec. Estimated time to finish: 0:01:00.\n"
        "     total [##########........................................] 20.00%\n"
        "this epoch [#####.............................................] 10.00%\n"
        "      300 iter, 0 epoch / 20 epochs\n"
        "    100.0 iters/sec. Estimated time to finish: 0:01:00.\n",
        300,
        None,
        None,
    ),
    Shape(  # sockeye3
        "sockeye",
        "[INFO:sockeye.training] 2024-05-01 10:00:10  Epoch[0] Batch [50]\tSpeed: 100.0 samples/sec 2500.0 tokens/sec 1.0 updates/sec\tperplexity=100\n"
        "[INFO:sockeye.training] 2024-05-01 10:00:20  Epoch[0] Batch [100]\tSpeed: 100.0 samples/sec 2500.0 tokens/sec 1.0 updates/sec\tperplexity=100\n",
        100,
        None,
        10.0,
    ),
    Shape(  # sockeye2
        "sockeye",
        "[2021-01-01:10:00:10:INFO:sockeye.training:log] E=0 B=50\ts/sec=10.0 tok/sec=250.0 u/sec=1.0\tppl=100\n"
        "[2021-01-01:10:00:20:INFO:sockeye.training:log] E=0 B=100\ts/sec=10.0 tok/sec=250.0 u/sec=1.0\tppl=100\n",
        100,
        None,
        10.0,
    ),
    Shape(  # joeynmt2
        "joeynmt",
        "2022-05-01 10:00:10,000 - INFO - joeynmt.training - Epoch   1, Step:      100, Batch Loss:     5.0, Batch Acc: 0.01, Tokens per Sec:     2500, Lr: 0.0003\n"
        "2022-05-01 10:00:20,000 - INFO - joeynmt.training - Epoch   1, Step:      200, Batch Loss:     5.0, Batch Acc: 0.01, Tokens per Sec:     2500, Lr: 0.0003\n",
        200,
        None,
        10.0,
    ),
    Shape(  # joeynmt1
        "joeynmt",
        "2020-05-01 10:00:10,000 Epoch   1 Step:      100 Batch Loss:     5.0 Tokens per Sec:     2500, Lr: 0.0003\n"
        "2020-05-01 10:00:20,000 Epoch   1 Step:      200 Batch Loss:     5.0 Tokens per Sec:     2500, Lr: 0.0003\n",
        200,
        None,
        10.0,
    ),
    Shape(  # opennmt
        "opennmt",
        "[2021-05-01 10:00:10,000 INFO] Step 50/100000; acc:   4.1; ppl: 2000.1; xent: 7.6; lr: 0.0001; 5000/5000 tok/s;     10 sec\n"
        "[2021-05-01 10:00:20,000 INFO] Step 100/100000; acc:   4.1; ppl: 2000.1; xent: 7.6; lr: 0.0001; 5000/5000 tok/s;     20 sec\n",
        100,
        100000,
        10.0,
    ),
    Shape(  # opennmt3
        "opennmt",
        "[2024-05-01 10:00:10,000 INFO] Step 50/100000; acc: 4.1; ppl: 2000.1; xent: 7.6; lr: 0.0001; sents:   1000; bsz: 500/ 500/10; 5000/5000 tok/s;     10 sec;\n"
        "[2024-05-01 10:00:20,000 INFO] Step 100/100000; acc: 4.1; ppl: 2000.1; xent: 7.6; lr: 0.0001; sents:   1000; bsz: 500/ 500/10; 5000/5000 tok/s;     20 sec;\n",
        100,
        100000,
        10.0,
    ),
    Shape(  # flair
        "flair",
        "2023-05-01 10:00:10,000 epoch 1 - iter 10/100 - loss 2.3 - time (sec): 1.0 - samples/sec: 100.0 - lr: 0.1 - momentum: 0\n"
        "2023-05-01 10:00:20,000 epoch 1 - iter 20/100 - loss 2.3 - time (sec): 1.0 - samples/sec: 100.0 - lr: 0.1 - momentum: 0\n",
        20,
        None,
        10.0,
    ),
    Shape(  # flair old
        "flair",
        "2019-05-01 10:00:10,000 epoch 1 - iter 10/100 - loss 2.3 - samples/sec: 100.0\n"
        "2019-05-01 10:00:20,000 epoch 1 - iter 20/100 - loss 2.3 - samples/sec: 100.0\n",
        20,
        None,
        10.0,
    ),
    Shape(  # paddle cls
        "paddle",
        "[2022/05/01 10:00:10] ppcls INFO: [Train][Epoch 1/120][Iter: 0/1251]lr(LinearWarmup): 0.001, top1: 0.1, CELoss: 7.0, loss: 7.0, batch_cost: 1.00000s, reader_cost: 0.1, ips: 256 samples/s, eta: 1 day, 2:03:04\n"
        "[2022/05/01 10:00:20] ppcls INFO: [Train][Epoch 1/120][Iter: 10/1251]lr(LinearWarmup): 0.001, top1: 0.1, CELoss: 7.0, loss: 7.0, batch_cost: 1.00000s, reader_cost: 0.1, ips: 256 samples/s, eta: 1 day, 2:03:04\n",
        11,
        150120,
        10.0,
    ),
    Shape(  # ppocr
        "paddle",
        "[2022/05/01 10:00:10] ppocr INFO: epoch: [1/500], global_step: 10, lr: 0.001, acc: 0.1, loss: 7.0, avg_reader_cost: 0.1 s, avg_batch_cost: 1.0 s, avg_samples: 64.0, ips: 64.0 samples/s, eta: 1:02:03\n"
        "[2022/05/01 10:00:20] ppocr INFO: epoch: [1/500], global_step: 20, lr: 0.001, acc: 0.1, loss: 7.0, avg_reader_cost: 0.1 s, avg_batch_cost: 1.0 s, avg_samples: 64.0, ips: 64.0 samples/s, eta: 1:02:03\n",
        20,
        None,
        10.0,
    ),
    Shape(  # ppdet
        "ppdet",
        "[05/01 10:00:10] ppdet.engine INFO: Epoch: [0] [ 0/1000] learning_rate: 0.001 loss: 7.0 eta: 1:02:03 batch_cost: 1.0 data_cost: 0.1 ips: 8.0 images/s\n"
        "[05/01 10:00:20] ppdet.engine INFO: Epoch: [0] [ 10/1000] learning_rate: 0.001 loss: 7.0 eta: 1:02:03 batch_cost: 1.0 data_cost: 0.1 ips: 8.0 images/s\n",
        11,
        None,
        10.0,
    ),
    Shape(  # paddleseg
        "paddle",
        "2022-05-01 10:00:10 [INFO]\t[TRAIN] epoch: 1, iter: 10/80000, loss: 0.5, lr: 0.01, batch_cost: 1.0, reader_cost: 0.1, ips: 4 samples/sec | ETA 22:12:43\n"
        "2022-05-01 10:00:20 [INFO]\t[TRAIN] epoch: 1, iter: 20/80000, loss: 0.5, lr: 0.01, batch_cost: 1.0, reader_cost: 0.1, ips: 4 samples/sec | ETA 22:12:43\n",
        20,
        80000,
        10.0,
    ),
    Shape(  # paddlenlp
        "paddle",
        "[2023-05-01 10:00:10,000] [    INFO] - loss: 0.5, learning_rate: 1e-5, global_step: 10, interval_runtime: 10.0, interval_samples_per_second: 5, interval_steps_per_second: 1, epoch: 0.1\n"
        "[2023-05-01 10:00:20,000] [    INFO] - loss: 0.5, learning_rate: 1e-5, global_step: 20, interval_runtime: 10.0, interval_samples_per_second: 5, interval_steps_per_second: 1, epoch: 0.1\n",
        20,
        None,
        10.0,
    ),
    Shape(  # maxtext
        "jax",
        "completed step: 0, seconds: 2.000, TFLOP/s/device: 100, Tokens/s/device: 1000, total_weights: 100, loss: 10.8\n"
        "completed step: 1, seconds: 2.000, TFLOP/s/device: 100, Tokens/s/device: 1000, total_weights: 100, loss: 10.8\n"
        "completed step: 2, seconds: 2.000, TFLOP/s/device: 100, Tokens/s/device: 1000, total_weights: 100, loss: 10.8\n",
        3,
        None,
        6.0,
    ),
    Shape(  # flax clu
        "jax",
        "I0501 10:00:10.000 140 logging_writer.py:48] [100] accuracy=0.1, learning_rate=0.1, loss=6.9, steps_per_second=5.0\n"
        "I0501 10:00:20.000 140 logging_writer.py:48] [200] accuracy=0.1, learning_rate=0.1, loss=6.9, steps_per_second=5.0\n",
        200,
        None,
        10.0,
    ),
    Shape(  # flax mnist
        "python_logging",
        "epoch:  1, train_loss: 0.5, train_accuracy: 90.0, test_loss: 0.3, test_accuracy: 95.0\n"
        "epoch:  2, train_loss: 0.5, train_accuracy: 90.0, test_loss: 0.3, test_accuracy: 95.0\n"
        "epoch:  3, train_loss: 0.5, train_accuracy: 90.0, test_loss: 0.3, test_accuracy: 95.0\n",
        3,
        None,
        None,
    ),
    Shape(  # mxnet
        "mxnet_speedometer",
        "INFO:root:Epoch[0] Batch [20]\tSpeed: 100.00 samples/sec\taccuracy=0.01\n"
        "INFO:root:Epoch[0] Batch [40]\tSpeed: 100.00 samples/sec\taccuracy=0.01\n",
        40,
        None,
        None,
    ),
    Shape(  # mxnet new
        "mxnet_speedometer",
        "INFO:root:Epoch[0] Batch [0-20]\tSpeed: 100.00 samples/sec\taccuracy=0.01\tloss=2.3\n"
        "INFO:root:Epoch[0] Batch [20-40]\tSpeed: 100.00 samples/sec\taccuracy=0.01\tloss=2.3\n",
        40,
        None,
        None,
    ),
    Shape(  # mmengine ranks
        "mmengine_text",
        "07/03 13:04:10 - mmengine - INFO - Epoch(train)  [1][ 10/196]  base_lr: 1e-3 lr: 3.3e-04  eta: 0:13:14  time: 1.0  data_time: 0.0335  memory: 970  grad_norm: 2  loss: 6.18\n"
        "07/03 13:04:20 - mmengine - INFO - Epoch(train)  [1][ 20/196]  base_lr: 1e-3 lr: 3.3e-04  eta: 0:13:14  time: 1.0  data_time: 0.0335  memory: 970  grad_norm: 2  loss: 6.18\n",
        20,
        None,
        10.0,
    ),
    Shape(  # mmengine iter
        "mmengine_text",
        "2024/07/03 13:04:10 - mmengine - INFO - Iter(train) [ 10/80000]  lr: 3.3e-04  eta: 1 day, 0:13:14  time: 1.0  data_time: 0.0335  memory: 970  loss: 6.18\n"
        "2024/07/03 13:04:20 - mmengine - INFO - Iter(train) [ 20/80000]  lr: 3.3e-04  eta: 1 day, 0:13:14  time: 1.0  data_time: 0.0335  memory: 970  loss: 6.18\n",
        20,
        80000,
        10.0,
    ),
    Shape(  # mmcv
        "mmcv_text",
        "2021-05-01 10:00:10,000 - mmdet - INFO - Epoch [1][50/7330]\tlr: 1.978e-03, eta: 13:22:36, time: 1.0, data_time: 0.048, memory: 3776, loss_rpn_cls: 0.6, loss: 2.1\n"
        "2021-05-01 10:00:20,000 - mmdet - INFO - Epoch [1][100/7330]\tlr: 1.978e-03, eta: 13:22:36, time: 1.0, data_time: 0.048, memory: 3776, loss_rpn_cls: 0.6, loss: 2.1\n",
        100,
        None,
        10.0,
    ),
    Shape(  # d2
        "detectron2_text",
        "[01/29 06:25:10 d2.utils.events]:  eta: 0:10:00  iter: 19  total_loss: 1.104  loss_cls: 0.2  time: 0.6797  last_time: 0.6  data_time: 0.1221  last_data_time: 0.1  lr: 0.00025  max_mem: 4988M\n"
        "[01/29 06:25:20 d2.utils.events]:  eta: 0:10:00  iter: 39  total_loss: 1.104  loss_cls: 0.2  time: 0.6797  last_time: 0.6  data_time: 0.1221  last_data_time: 0.1  lr: 0.00025  max_mem: 4988M\n",
        40,
        None,
        10.0,
    ),
    Shape(  # dll
        "dllogger_text",
        "DLL 2025-02-19 07:03:10.369403 - Epoch: 0 Iteration: 26  train.loss : 6.88595 None train.compute_ips : 21639.42 images/s\n"
        "DLL 2025-02-19 07:03:20.369403 - Epoch: 0 Iteration: 27  train.loss : 6.88595 None train.compute_ips : 21639.42 images/s\n",
        28,
        None,
        10.0,
    ),
    Shape(  # dll tuple
        "dllogger_text",
        "DLL 2025-02-19 07:03:10.3 - (0, 0) train_iter_time : 13.17 train_loss : 1.0\n"
        "DLL 2025-02-19 07:03:20.3 - (0, 1) train_iter_time : 13.17 train_loss : 1.0\n",
        2,
        None,
        10.0,
    ),
    Shape(  # dll json
        "dllogger_json",
        'DLLL {"timestamp": "1700000010.5", "datetime": "2023-11-14 22:13:20.5", "elapsedtime": "5.0", "type": "LOG", "step": [0, 0], "data": {"train.loss": 6.9, "train.total_ips": 100.0}}\n'
        'DLLL {"timestamp": "1700000020.5", "datetime": "2023-11-14 22:13:20.5", "elapsedtime": "5.0", "type": "LOG", "step": [0, 10], "data": {"train.loss": 6.9, "train.total_ips": 100.0}}\n',
        11,
        None,
        10.0,
    ),
    Shape(  # gnmt
        "gnmt",
        "0: TRAIN [0][0/40]\tTime 0.500 (0.500)\tData 1.81e-03 (1.91e-03)\tTok/s 306068 (369078)\tLoss/tok 10.0 (10.1)\tLR 1e-3\n"
        "0: TRAIN [0][10/40]\tTime 0.500 (0.500)\tData 1.81e-03 (1.91e-03)\tTok/s 306068 (369078)\tLoss/tok 10.0 (10.1)\tLR 1e-3\n",
        11,
        None,
        5.5,
    ),
    Shape(  # mllog
        "mllog",
        ':::MLLOG {"namespace": "", "time_ms": 1714680540000, "event_type": "INTERVAL_END", "key": "epoch_stop", "value": null, "metadata": {"file": "a", "lineno": 1, "epoch_num": 1}}\n'
        ':::MLLOG {"namespace": "", "time_ms": 1714680550000, "event_type": "INTERVAL_END", "key": "epoch_stop", "value": null, "metadata": {"file": "a", "lineno": 1, "epoch_num": 2}}\n'
        ':::MLLOG {"namespace": "", "time_ms": 1714680560000, "event_type": "INTERVAL_END", "key": "epoch_stop", "value": null, "metadata": {"file": "a", "lineno": 1, "epoch_num": 3}}\n',
        3,
        None,
        20.0,
    ),
    Shape(  # yolov5
        "yolo_console",
        "\n"
        "     Epoch   gpu_mem       box       obj       cls    labels  img_size\n\r"
        "     0/299     10.4G   0.1   0.06  0.05       120       640:  10%|██| 10/100 [00:10<01:00,  1.00it/s]\r"
        "     0/299     10.4G   0.1   0.06  0.05       120       640:  20%|██| 20/100 [00:20<01:00,  1.00it/s]\r"
        "     0/299     10.4G   0.1   0.06  0.05       120       640:  30%|██| 30/100 [00:30<01:00,  1.00it/s]",
        30,
        30000,
        30.0,
    ),
    Shape(  # yolov8
        "yolo_console",
        "\n"
        "      Epoch    GPU_mem   box_loss   cls_loss   dfl_loss  Instances       Size\n\r"
        "      1/100      2.5G      1.2      2.3      1.1         22        640:  10%|██| 10/100 [00:10<01:00,  1.00it/s]\r"
        "      1/100      2.5G      1.2      2.3      1.1         22        640:  20%|██| 20/100 [00:20<01:00,  1.00it/s]\r"
        "      1/100      2.5G      1.2      2.3      1.1         22        640:  30%|██| 30/100 [00:30<01:00,  1.00it/s]",
        30,
        10000,
        30.0,
    ),
    Shape(  # yolo11 new
        "yolo_console",
        "\x1b[K      1/100      2.5G      1.2      2.3      1.1         22        640: 10% ━━╸───────── 10/100 1.0it/s 10.0s<1:10\r"
        "\x1b[K      1/100      2.5G      1.2      2.3      1.1         22        640: 20% ━━╸───────── 20/100 1.0it/s 20.0s<1:10\r"
        "\x1b[K      1/100      2.5G      1.2      2.3      1.1         22        640: 30% ━━╸───────── 30/100 1.0it/s 30.0s<1:10\r",
        30,
        10000,
        30.0,
    ),
    Shape(  # loguru own
        "python_logging",
        "2024-05-01 10:00:10.123 | INFO     | train:fit:42 - epoch 1/10 step 100/1,000 loss=0.5\n"
        "2024-05-01 10:00:20.123 | INFO     | train:fit:42 - epoch 1/10 step 110/1,000 loss=0.5\n"
        "2024-05-01 10:00:30.123 | INFO     | train:fit:42 - epoch 1/10 step 120/1,000 loss=0.5\n",
        120.0,
        10000.0,
        20.0,
    ),
    Shape(  # json own
        "jsonl",
        '{"time": "2024-05-01T10:00:10Z", "level": "INFO", "step": 10, "max_steps": 1000, "loss": 0.5}\n'
        '{"time": "2024-05-01T10:00:20Z", "level": "INFO", "step": 20, "max_steps": 1000, "loss": 0.5}\n',
        20,
        1000,
        10.0,
    ),
    Shape(  # wandb
        "jsonl",
        '{"_step": 10, "_runtime": 10.5, "_timestamp": 1700000010.5, "loss": 0.5}\n'
        '{"_step": 20, "_runtime": 20.5, "_timestamp": 1700000020.5, "loss": 0.5}\n',
        20,
        None,
        10.0,
    ),
    Shape(  # darknet
        "darknet",
        " 1: 1.5, 2.0 avg loss, 0.001 rate, 2.0 seconds, 64 images, 1.0 hours left\n"
        " 2: 1.5, 2.0 avg loss, 0.001 rate, 2.0 seconds, 64 images, 1.0 hours left\n"
        " 3: 1.5, 2.0 avg loss, 0.001 rate, 2.0 seconds, 64 images, 1.0 hours left\n",
        3,
        None,
        6.0,
    ),
    Shape(  # espnet
        "espnet2",
        "[host] 2024-05-01 10:00:10,000 (trainer:732) INFO: 1epoch:train:1-50batch: iter_time=0.1, forward_time=0.1, loss=100, train_time=1.0\n"
        "[host] 2024-05-01 10:00:20,000 (trainer:732) INFO: 1epoch:train:51-100batch: iter_time=0.1, forward_time=0.1, loss=100, train_time=1.0\n",
        100,
        None,
        10.0,
    ),
    Shape(  # axolotl
        "hf_tqdm",
        "{'loss': 1.2, 'grad_norm': 0.5, 'learning_rate': 2e-05, 'memory/max_active (GiB)': 20.0, 'epoch': 0.20}\n\r"
        "  10%|█ | 10/100 [00:10<01:00,  1.00it/s]{'loss': 1.2, 'grad_norm': 0.5, 'learning_rate': 2e-05, 'memory/max_active (GiB)': 20.0, 'epoch': 0.40}\n\r"
        "  20%|█ | 20/100 [00:20<01:00,  1.00it/s]{'loss': 1.2, 'grad_norm': 0.5, 'learning_rate': 2e-05, 'memory/max_active (GiB)': 20.0, 'epoch': 0.60}\n\r"
        "  30%|█ | 30/100 [00:30<01:00,  1.00it/s]",
        30,
        100,
        30.0,
    ),
    Shape(  # trl dpo
        "hf_dict",
        "{'loss': 0.6, 'rewards/chosen': 0.1, 'learning_rate': 1e-6, 'epoch': 0.10}\n"
        "{'loss': 0.6, 'rewards/chosen': 0.1, 'learning_rate': 1e-6, 'epoch': 0.20}\n"
        "{'loss': 0.6, 'rewards/chosen': 0.1, 'learning_rate': 1e-6, 'epoch': 0.30}\n",
        0.3,
        None,
        None,
    ),
    Shape(  # llama-factory jsonl
        "jsonl",
        '{"current_steps": 10, "total_steps": 300, "loss": 1.2, "lr": 1e-5, "epoch": 0.1, "percentage": 3.3, "elapsed_time": "0:00:10", "remaining_time": "0:05:00"}\n'
        '{"current_steps": 20, "total_steps": 300, "loss": 1.2, "lr": 1e-5, "epoch": 0.1, "percentage": 3.3, "elapsed_time": "0:00:20", "remaining_time": "0:05:00"}\n',
        20,
        300,
        20.0,
    ),
    Shape(  # fastai
        "fastai",
        "epoch     train_loss  valid_loss  accuracy  time    \n"
        "0         0.5    0.4    0.9  00:10     \n"
        "1         0.5    0.4    0.9  00:10     \n"
        "2         0.5    0.4    0.9  00:10     \n",
        3,
        None,
        30.0,
    ),
    Shape(  # slurm rank
        "python_logging",
        "3: 2024-05-01 10:00:10 | step 10/1000 | loss 0.5 | 1.0 it/s\n"
        "3: 2024-05-01 10:00:20 | step 20/1000 | loss 0.5 | 1.0 it/s\n",
        20,
        1000,
        10.0,
    ),
)
