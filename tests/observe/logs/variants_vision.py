"""Other versions, options and habits of the formats in `shapes`: trainers of vision models."""

from tests.observe.logs.shapes import Shape, bar


def lines(form: str, *values: tuple[object, ...]) -> str:
    """The form filled in with each row of values, one line each."""
    return "".join(form.format(*row) + "\n" for row in values)


def minutes(form: str, *steps: object) -> str:
    """Lines a minute apart: `{m}` is the minute, `{n}` the step."""
    return "".join(form.format(m=at, n=step) + "\n" for at, step in enumerate(steps))


VISION = (
    Shape(
        "caffe",
        "I0727 10:00:00.1 7 solver.cpp:48] Initializing solver from parameters:\nmax_iter: 500\ndisplay: 20\n"
        + minutes(
            "I0727 10:0{m}:00.500 7 solver.cpp:313]     [0.0] Iteration {n} (3.2 iter/s, 31s/100 iter), 0.1/10ep, loss = 0.5",
            100,
            200,
            300,
        ),
        300,
        500,
        120.0,
    ),
    Shape(
        "caffe",
        minutes("I20310727 10:0{m}:00.500000 7 solver.cpp:243] Iteration {n}, loss = -nan", 0, 20, 40),
        40,
        None,
        120.0,
    ),
    Shape(
        "pytorch_imagenet",
        minutes(
            "2031-01-02 03:0{m}:00,000 INFO Epoch: [0][{n}/900], lr: 0.00100\tTime 1.200 (1.300)\tData 0.100 (0.200)\tLoss 5.1 (5.2)\tPrec@1 1.0 (1.0)",
            0,
            20,
            40,
        ),
        41,
        None,
        120.0,
    ),
    Shape(
        "pytorch_imagenet",
        lines(
            "Epoch: [0][{}/900]\tTime 2.000s (2.000s)\tSpeed 12.3 samples/s\tData 0.3s (0.4s)\tLoss 0.00213 (0.00222)\tAccuracy 0.1 (0.1)",
            (0,),
            (100,),
        ),
        101,
        None,
        202.0,
    ),
    Shape(
        "pytorch_imagenet",
        lines(
            "Epoch: [0][{:4d}/900]\tTime  1.000 ( 1.000)\tData  0.3 ( 0.4)\tLoss 6.9 (6.9)\tAcc@1   0.00 (  0.00)",
            (1,),
            (101,),
            (201,),
        ),
        202,
        None,
        202.0,
    ),
    Shape(
        "timm",
        lines(
            "Train: 3 [ {:4d}/1251 ({:3.0f}%)]  Loss:  6.913041 (6.9196)  Time: 0.500s, 512.00/s  (0.500s,  512.00/s)  LR: 1.000e-06  Data: 0.010 (0.030)",
            (0, 0),
            (50, 4),
            (100, 8),
        ),
        3 * 1251 + 101,
        None,
        50.5,
    ),
    Shape(
        "timm",
        lines(
            "Train: 0 [{:>4d}/200 ({:>3.0f}%)]  Loss: 6.93 (6.93)  Time: 1.00s,  256.00/s  (1.00s,  256.00/s)  LR: 1.000e-05  Data: 0.5 (0.5)",
            (0, 0),
            (99, 50),
            (199, 100),
        ),
        200,
        None,
        200.0,
    ),
    Shape(
        "metriclogger",
        lines(
            "Training  [{:>6d}/9000]  eta: 1 day, 2:03:04  lr: 0.0001 (0.0001)  total_loss: 10.1 (10.5)  time: 0.500000  data: 0.1  max mem: 123",
            (0,),
            (10,),
            (20,),
        ),
        21,
        9000,
        10.5,
    ),
    Shape(
        "metriclogger",
        lines(
            "Train: data epoch: [0]  [{:>4d}/1000]  eta: 0:16:40  lr: 0.000003  loss: 0.8  time: 1.0000  data: 0.0000  max mem: 123",
            (0,),
            (50,),
            (100,),
        ),
        101,
        None,
        1000 * 101 / 899,
    ),
    Shape(
        "metriclogger",
        lines(
            "Train Epoch: [1]  [{:>4d}/1000]  eta: 0:15:00  lr: 0.000003  loss: 0.8  time: 1.0000  data: 0.0000  max mem: 123",
            (0,),
            (50,),
            (100,),
        ),
        101,
        None,
        900 * 101 / 899,
    ),
    Shape(
        "torch7",
        lines(
            " | Epoch: [1][{}/5004]    Time 0.500  Data 0.001  Err 6.9012  top1  99.900  top5  99.100", (1,), (2,), (3,)
        ),
        3,
        None,
        1.5,
    ),
    Shape(
        "torch7",
        lines(
            "Epoch: [1][{}/10000]\tTime 0.500 Err 6.9012 Top1-%: 0.10 LR 1e-02 DataLoadingTime 0.002", (1,), (2,), (3,)
        ),
        3,
        None,
        1.5,
    ),
    Shape(
        "torch7",
        lines(
            "Epoch: [1][{:8d} / {:8d}]\t Time: 0.500  DataTime: 0.001   Err_G: 3.1 Err_D: 0.1 ErrL1: 0.3",
            (1, 400),
            (2, 400),
            (3, 400),
        ),
        3,
        None,
        1.5,
    ),
    Shape(
        "char_rnn",
        lines(
            "{}/21150 (epoch 0.{:03d}), train_loss = 4.19803083, grad/param norm = 5.1e-01, time/batch = 0.5000s",
            (1, 2),
            (2, 4),
            (3, 7),
        ),
        3,
        21150,
        1.5,
    ),
    Shape(
        "mmcv_text",
        minutes(
            "2031-01-02 03:0{m}:00,123 - INFO - Epoch [1][{n}/7330]\tlr: 0.00667, eta: 10:20:30, time: 0.503, data_time: 0.010, memory: 3900, loss_rpn_cls: 0.3, acc: 80.1, loss: 1.2",
            50,
            100,
            150,
        ),
        150,
        None,
        120.0,
    ),
    Shape(
        "mmcv_text",
        minutes(
            "2031-01-02 03:0{m}:00,123 - mmedit - INFO - Iter [{n}/300000]\tlr_generator: 1.000e-04, eta: 1 day, 2:03:04, time: 0.2, data_time: 0.1, memory: 123, loss_pix: 0.0512, loss: 0.0512",
            100,
            200,
            300,
        ),
        300,
        300000,
        120.0,
    ),
    Shape(
        "mmcv_text",
        minutes(
            "2031-01-02 03:0{m}:00,123 - mmpose - INFO - Epoch [1][{n}/1170]\tlr: 5.000e-05, eta: 3 days, 1:00:00, time: 0.2, data_time: 0.1, heatmap_loss: 0.002, acc_pose: 0.1, loss: 0.0022, grad_norm: 0.01",
            50,
            100,
        ),
        100,
        None,
        60.0,
    ),
    Shape(
        "mmcv_json",
        "".join(
            f'{{"mode": "train", "epoch": {e}, "iter": {n}, "lr": 0.01, "memory": 42, "data_time": 0.01, "decode.loss_ce": 0.3, "loss": 0.3, "time": 0.5}}\n'
            for e, n in ((1, 50), (1, 100), (2, 150), (3, 200))
        ),
        200,
        None,
        100.0,
    ),
    Shape(
        "mmengine_text",
        minutes(
            "2031/01/02 03:0{m}:00 - mmengine - INFO - Iter(train) [  {n}/80000]  base_lr: 1.0e-02 lr: 1.0e-02  eta: 1 day, 2:03:04  time: 0.5  data_time: 0.01  memory: 123  loss: 1.2  decode.loss_ce: 0.9",
            50,
            100,
        ),
        100,
        80000,
        60.0,
    ),
    Shape(
        "mmengine_text",
        minutes(
            "01/02 03:0{m}:00 - mmengine - INFO - Epoch(train)   [1][ {n}/1000]  lr: 1.0e-03  eta: 0:10:00  time: 0.5  data_time: 0.01  loss: 1.2",
            50,
            100,
        ),
        100,
        None,
        60.0,
    ),
    Shape(
        "detectron2_text",
        minutes(
            "\x1b[32m[01/02 03:0{m}:00 d2.utils.events]: \x1b[0m eta: 1 day, 0:00:10  iter: {n}  total_loss: nan  loss_cls: 0.1    time: 0.6797  last_time: 0.7  data_time: 0.1221  last_data_time: 0.1   lr: 0.00025  max_mem: 4988M",
            19,
            39,
            59,
        ),
        60,
        None,
        120.0,
    ),
    Shape(
        "detectron2_text",
        minutes(
            "[01/02 03:0{m}:00 fastreid.utils.events]:  eta: 0:30:00  epoch/iter: 0/{n}  total_loss: 2.3  loss_cls: 1.1  time: 0.3  data_time: 0.001  lr: 3.5e-05  max_mem: 4000M",
            199,
            399,
            599,
        ),
        600,
        None,
        120.0,
    ),
    Shape(
        "detectron1",
        lines(
            'json_stats: {{"accuracy_cls": "0.9", "eta": "10:20:30", "iter": {}, "loss": "1.2", "lr": "0.003", "mb_qsize": 64, "mem": 4000, "time": "0.500000"}}',
            (0,),
            (20,),
            (40,),
        ),
        41,
        None,
        20.5,
    ),
    Shape(
        "python_logging",
        minutes(
            "2031-01-02 03:0{m}:00 SSD.trainer INFO: iter: 0000{n}, lr: 0.00100, total_loss: 12.3 (12.3), reg_loss: 3.1 (3.1), time: 0.500 (0.600), eta: 1:02:03, mem: 1234M",
            10,
            20,
            30,
            40,
        ),
        40,
        None,
        180.0,
    ),
    Shape(
        "python_logging",
        minutes(
            "2031-01-02 03:0{m}:00 | INFO     | yolox.core.trainer:260 - epoch: 1/300, iter: {n}/1849, mem: 5000Mb, iter_time: 0.5s, data_time: 0.001s, total_loss: 15.1, lr: 1e-4, size: 640, ETA: 3 days, 1:02:03",
            10,
            20,
            30,
            40,
        ),
        40,
        300 * 1849,
        180.0,
    ),
    Shape(
        "python_logging",
        minutes(
            "2031-01-02 03:0{m}:00,000 reid_baseline.train INFO: Epoch[1] Iteration[{n}/200] Loss: 6.2, Acc: 0.0, Base Lr: 3.5e-05",
            50,
            100,
            150,
        ),
        150,
        None,
        120.0,
    ),
    Shape(
        "python_logging",
        minutes(
            "2031-01-02 03:0{m}:00,000 Epoch: [0/484] Iter:[{n}/247], Time: 0.50, lr: [0.01], Loss: 3.2", 10, 20, 30
        ),
        30,
        484 * 247,
        120.0,
    ),
    Shape(
        "basicsr",
        minutes(
            "31-01-02 03:0{m}:00.000 : <epoch:  0, iter:   {n:6,d}, lr:1.000e-04> G_loss: 1.2e-02 ", 800, 900, 1000
        ),
        1000,
        None,
        120.0,
    ),
    Shape(
        "basicsr",
        minutes(
            "2031-01-02 03:0{m}:00,000 INFO: [RRDBNet..][epoch:  0, iter:   {n:6,d}, lr:(2.000e-04,2.000e-04,)] [eta: 1 day, 2:03:04, time (data): 0.300 (0.003)] l_pix: 2.9e-02 ",
            800,
            900,
            1000,
        ),
        1000,
        None,
        120.0,
    ),
    Shape(
        "stylegan",
        "Training for 25000 kimg...\n\n"
        + lines(
            "tick {:<5d} kimg {:<8.1f} lod 0.00  minibatch 32   time {:<12s} sec/tick 100.3   sec/kimg 12.30   maintenance 20.1   gpumem 6.1",
            (0, 0.1, "58s"),
            (1, 8.1, "2m 40s"),
            (2, 16.1, "4m 20s"),
        ),
        16.1,
        25000,
        260.0,
    ),
    Shape(
        "dtrb",
        lines("[{}/300000] Loss: 2.1 elapsed_time: {}", (1, 5.5), (500, 200.5)),
        500,
        300000,
        200.5,
    ),
    Shape(
        "darknet",
        lines(
            "\n {}: 12.345678, 13.456789 avg loss, 0.001000 rate, 2.500000 seconds, {} images, 12.3 hours left\nLoaded: 0.000031 seconds",
            (1, 64),
            (2, 128),
            (3, 192),
        ),
        3,
        None,
        7.5,
    ),
    Shape(
        "darknet",
        lines(
            "Region Avg IOU: 0.3, Class: 0.1, Obj: 0.2, No Obj: 0.4, Avg Recall: 0.2,  count: 5\n{}: 12.345678, 13.456789 avg, 0.001000 rate, 2.500000 seconds, {} images",
            (1, 64),
            (2, 128),
            (3, 192),
        ),
        3,
        None,
        7.5,
    ),
    Shape(
        "yolo_console",
        "".join(
            bar("     1/100         0G     1.2      1.3      1.1         20        640: ", n, 8, f"00:{n:02d}") + "\r"
            for n in range(9)
        ),
        8,
        800,
        8.0,
    ),
    Shape(
        "yolo_console",
        "Training start...\n     Epoch  iou_loss  dfl_loss  cls_loss\n"
        + "".join(bar("     0/399     2.113         0     3.229: ", n, 8, f"00:{n:02d}") + "\r" for n in range(9)),
        8,
        3200,
        8.0,
    ),
    Shape(
        "yolo_console",
        "".join(
            f"\x1b[K      1/100      2.5G      1.2      1.3      1.1         20        640: {n}% ━━━━━╸────── {n}/100 5.0it/s {n / 5:.1f}s<{(100 - n) / 5:.1f}s\r"
            for n in range(5, 100, 5)
        ),
        95,
        10000,
        19.0,
    ),
    Shape(
        "ultralytics_csv",
        "               epoch,      train/box_loss,      train/obj_loss,   metrics/precision,               x/lr0\n"
        + lines(
            "{:>20d},              0.12,             0.04,            0.5,            0.01",
            (0,),
            (1,),
            (2,),
            (3,),
            (4,),
            (5,),
        ),
        6,
    ),
    Shape(
        "ppdet",
        minutes(
            "[01/02 03:0{m}:00] ppdet.engine INFO: Epoch: [0] [ {n}/1000] learning_rate: 0.000010 loss: 3.2 loss_cls: 1.1 eta: 1 day, 1:02:03 batch_cost: 1.2 data_cost: 0.5 ips: 6.7 images/s max_mem_reserved: 1 MB",
            0,
            20,
            40,
        ),
        41,
        None,
        120.0,
    ),
    Shape(
        "paddle",
        minutes(
            "[2031/01/02 03:0{m}:00] ppcls INFO: [Train][Epoch 1/120][Iter: {n}/5000]lr(PiecewiseDecay): 0.10000000, top1: 0.0, CELoss: 7.1, loss: 7.1, batch_cost: 2.3s, reader_cost: 1.2, ips: 12.3 images/s, eta: 12 days, 3:04:05",
            0,
            10,
            20,
        ),
        21,
        600000,
        120.0,
    ),
    Shape(
        "paddle",
        minutes(
            "2031-01-02 03:0{m}:00 INFO: epoch:1  , train step:{n}   , loss: 7.1, top1: 0.0, lr: 0.100000, batch_cost: 0.30 s, reader_cost: 0.1 s, ips: 200 images/sec, eta: 1:00:00",
            10,
            20,
            30,
        ),
        31,
        None,
        120.0,
    ),
    Shape(
        "paddle",
        minutes(
            "[2031/01/02 03:0{m}:00] ppocr INFO: epoch: [1/500], global_step: {n}, lr: 0.001000, acc: 0.0, loss: 12.3, avg_reader_cost: 0.1 s, avg_batch_cost: 0.5 s, avg_samples: 8.0, ips: 12.3 samples/s, eta: 1:02:03",
            10,
            20,
            30,
        ),
        30,
        None,
        120.0,
    ),
    Shape(
        "paddle",
        minutes(
            "[2031/01/02 03:0{m}:00] root INFO: epoch: [1/500], iter: {n}, lr: 0.001000, loss: 12.3, reader_cost: 0.1 s, batch_cost: 0.5 s, samples: 80, ips: 12.3",
            10,
            20,
            30,
        ),
        30,
        None,
        120.0,
    ),
    Shape(
        "paddle",
        minutes(
            "[01/02 03:0{m}:00] ppgan.engine.trainer INFO: Epoch: [1/200], iter: [{n}/2000] lr: 0.1 loss: 0.3 batch_cost: 0.1 sec reader_cost: 0.1 sec ips: 12.3 images/s eta: 1:02:03",
            100,
            200,
            300,
        ),
        300,
        400000,
        120.0,
    ),
    Shape(
        "paddle",
        lines(
            "step {:>4d}/938 [=====>........................] - loss: 0.5 - acc: 0.8 - ETA: 12s - 20ms/step",
            (10,),
            (20,),
            (30,),
        ),
        30,
        None,
        0.6,
    ),
)
