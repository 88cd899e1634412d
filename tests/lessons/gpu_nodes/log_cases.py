"""Logs of failed launches with the right answer: small ones, re-made from what went wrong with real ones.

To add a case, write the log as it looks, and what should be found in it.
"""

# ruff: noqa: E501 (lines of logs are as long as launchers write them)

from dataclasses import dataclass
from textwrap import dedent


@dataclass(frozen=True)
class LogCase:
    """A log: what failed, in which line (as an editor counts), and on which ranks if the log tells them."""

    log: str
    failure: str
    line: int
    ranks: tuple[int, ...] = ()


def case(log: str, failure: str, line: int, ranks: tuple[int, ...] = ()) -> LogCase:
    return LogCase(dedent(log).removeprefix("\n"), failure, line, ranks)


WATCHDOG = (
    "[E1120 10:10:02.000001 4400 ProcessGroupNCCL.cpp:629] [Rank {0}] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=501, OpType=ALLREDUCE, NumelIn=1000, NumelOut=1000, Timeout(ms)=600000) ran for 600010 "
    "milliseconds before timing out."
)

CASES = {
    # One rank says why, the others complain.
    "one rank raises, the others wait in vain": case(
        f"""
        2026-11-20 10:00:01,100 [rank2] step 500 loss 1.93
        [rank2]: Traceback (most recent call last):
        [rank2]:   File "/home/ada/ddp/train.py", line 77, in <module>
        [rank2]:     label = names[row["class"]]
        [rank2]: KeyError: 'zebra'
        [rank0]:{WATCHDOG.format(0)}
        [rank1]:{WATCHDOG.format(1)}
        """,
        "KeyError",
        5,
        (2,),
    ),
    "a clock before each line, and then the rank": case(
        """
        2026-11-22 12:00:00 [rank2]: step 41
        2026-11-22 12:00:01 [rank2]: Traceback (most recent call last):
        2026-11-22 12:00:01 [rank2]:   File "train.py", line 31, in <module>
        2026-11-22 12:00:01 [rank2]:     label = example["label"]
        2026-11-22 12:00:01 [rank2]: KeyError: 'label'
        2026-11-22 12:10:02 [rank0]: Watchdog caught collective operation timeout: ALLREDUCE ran for 600012 ms
        """,
        "KeyError",
        5,
        (2,),
    ),
    "a container's clock before each line": case(
        """
        2026-11-22T12:00:00.123456789Z stderr F epoch 1
        2026-11-22T12:00:01.123456789Z stderr F Traceback (most recent call last):
        2026-11-22T12:00:01.123456789Z stderr F   File "train.py", line 31, in <module>
        2026-11-22T12:00:01.123456789Z stderr F     label = example["label"]
        2026-11-22T12:00:01.123456789Z stderr F KeyError: 'label'
        """,
        "KeyError",
        5,
    ),
    "the complaint is written before the cause": case(
        """
        [rank0]: Traceback (most recent call last):
        [rank0]:   File "/home/ada/ddp/train.py", line 80, in <module>
        [rank0]:     dist.all_reduce(loss)
        [rank0]: RuntimeError: [pair.cc:553] Connection closed by peer [10.0.0.2]:4711
        [rank1]: Traceback (most recent call last):
        [rank1]:   File "/home/ada/ddp/train.py", line 60, in <module>
        [rank1]:     x = shards[17]
        [rank1]: IndexError: list index out of range
        """,
        "IndexError",
        8,
        (1,),
    ),
    "rank 0 lacks a module, so the others cannot reach it": case(
        """
        [rank0]: Traceback (most recent call last):
        [rank0]:   File "/home/ada/ddp/train.py", line 5, in <module>
        [rank0]:     import wandb
        [rank0]: ModuleNotFoundError: No module named 'wandb'
        [rank1]:[W1120 10:00:09.000001 9 socket.cpp:764] [c10d] The client socket has failed to connect to [n1]:29500 (errno: 111 - Connection refused).
        [rank1]: torch.distributed.DistNetworkError: The client socket has timed out after 60000ms while trying to connect to (n1, 29500).
        """,
        "missing module",
        4,
        (0,),
    ),
    "the error of the data worker is inside the other one": case(
        """
        [rank1]: Traceback (most recent call last):
        [rank1]:   File "/home/ada/ddp/train.py", line 40, in <module>
        [rank1]:     for x, y in loader:
        [rank1]: KeyError: Caught KeyError in DataLoader worker process 0.
        [rank1]: Original Traceback (most recent call last):
        [rank1]:   File "/home/ada/env/lib/python3.12/site-packages/torch/utils/data/_utils/worker.py", line 349, in _worker_loop
        [rank1]:     data = fetcher.fetch(index)
        [rank1]:   File "/home/ada/ddp/data.py", line 12, in __getitem__
        [rank1]:     return self.rows[index]
        [rank1]: KeyError: 'row 9'
        """,
        "KeyError",
        10,
        (1,),
    ),
    "an exception while cleaning up after the first one": case(
        """
        Traceback (most recent call last):
          File "train.py", line 9, in <module>
            step(batch)
        ZeroDivisionError: division by zero

        During handling of the above exception, another exception occurred:

        Traceback (most recent call last):
          File "train.py", line 11, in <module>
            report.close()
        AttributeError: 'NoneType' object has no attribute 'close'
        """,
        "ZeroDivisionError",
        4,
    ),
    "all ranks raise the same": case(
        """
        Lmod has detected the following error: These module(s) or extension(s) exist
        but cannot be loaded as requested: "cuda"
        Lmod has detected the following error: These module(s) or extension(s) exist
        but cannot be loaded as requested: "apptainer"
        srun: error: n2: task 1: Exited with exit code 1
        srun: error: n1: task 0: Exited with exit code 1
        2026-11-05 10:30:11,818 [INFO][rank=1] Initialized torch.distributed (rank=1, world_size=2)
        [rank1]:     raise ValueError(f"{name} doesn't have any device set.")
        [rank1]: ValueError: layers.0.weight doesn't have any device set.
        [rank0]: ValueError: embed.weight doesn't have any device set.
        """,
        "ValueError",
        9,
        (0, 1),
    ),
    "the peer left, and only its exit code is there": case(
        """
        Lmod has detected the following error: These module(s) or extension(s) exist
        but cannot be loaded as requested: "cuda"
        srun: error: n1: task 0: Exited with exit code 1
        /home/ada/run.sh: line 19: 29850 Aborted                 (core dumped) python train.py
        srun: error: n2: task 1: Exited with exit code 134
        n2:29850:29871 [0] misc/socket.cc:50 NCCL WARN socketProgress: Connection closed by remote peer n1<45074>
        [rank1]:[E ProcessGroupNCCL.cpp:1414] [PG 0 Rank 1] Process group watchdog thread terminated with exception: NCCL error: remote process exited or there was a network error, NCCL version 2.20.5
        ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.
        """,
        "exit code",
        3,
        (0,),
    ),
    "new year's eve": case(
        """
        [rank1]:[E1231 23:59:58.000001 7 worker.cpp:1] FileNotFoundError: shard 17 is not there
        [rank0]:[E0101 00:00:09.000001 7 worker.cpp:1] RuntimeError: rank 1 did not answer
        """,
        "FileNotFoundError",
        1,
        (1,),
    ),
    "an assertion of one task, and what Slurm does to the others": case(
        """
        Traceback (most recent call last):
          File "/home/ada/bert/trainer.py", line 576, in do_training
            assert throughput >= args.min_throughput, \\
        AssertionError: Expected throughput to be at least 560000.0, instead found 289619.7
        srun: error: sn30: task 0: Exited with exit code 1
        srun: Terminating job step 30399.0
        slurmstepd: error: *** STEP 30399.0 ON sn30 CANCELLED AT 2026-04-03T09:40:00 ***
        srun: error: sn30: tasks 1,3-5: Terminated
        srun: error: sn30: tasks 2,6-7: Killed
        srun: Force Terminated job step 30399.0
        """,
        "AssertionError",
        4,
    ),
    "the shell says Killed, and Slurm says why": case(
        """
        /var/spool/slurmd/job67/slurm_script: line 15: 157728 Killed                  python train.py --restart
        slurmstepd: error: Detected 1 oom-kill event(s) in StepId=67.batch. Some of your processes may have been killed by the cgroup out-of-memory handler.
        """,
        "out of memory",
        2,
    ),
    "MPI_ABORT": case(
        """
        PROC 0 ERROR in io_input_file.cpp, line 12:
        Section DVOLUME-NODE TOPOLOGY is unknown
        --------------------------------------------------------------------------
        MPI_ABORT was invoked on rank 0 in communicator MPI_COMM_WORLD
        with errorcode -1.
        --------------------------------------------------------------------------
        [n9:26185] [[63355,0],4]-[[63355,1],52] mca_oob_tcp_msg_recv: readv failed: Connection reset by peer (104)
        """,
        "error of the program",
        1,
        (0,),
    ),
    # Nobody says why.
    "everybody waits, and one rank is silent": case(
        f"""
        [rank0]:{WATCHDOG.format(0)}
        [rank1]:{WATCHDOG.format(1)}
        [rank3]:{WATCHDOG.format(3)}
        """,
        "collective timeout",
        1,
        (0, 1, 3),
    ),
    "killed, and torchrun says by which signal": case(
        """
        E1128 10:11:12.131415 4242 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: -9) local_rank: 1 (pid: 4250) of binary: /home/ada/env/bin/python
        torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
        """,
        "killed",
        1,
    ),
    "killed, and srun says on which node": case(
        """
        step 9
        srun: error: n2: task 5: Killed
        [rank1]: torch.distributed.DistBackendError: NCCL error: remote process exited or there was a network error
        srun: error: n1: tasks 0-4: Exited with exit code 1
        """,
        "killed",
        2,
        (5,),
    ),
    "mpirun says which rank had which signal": case(
        """
        step 9
        --------------------------------------------------------------------------
        mpirun noticed that process rank 3 with PID 0 on node n1 exited on signal 9 (Killed).
        --------------------------------------------------------------------------
        """,
        "killed",
        3,
        (3,),
    ),
    "mpirun's paragraph at the end, with the rank in the name of the process": case(
        """
        --------------------------------------------------------------------------
        mpirun detected that one or more processes exited with non-zero status, thus causing
        the job to be terminated. The first process to do so was:

          Process name: [[29973,1],2]
          Exit code:    139
        --------------------------------------------------------------------------
        """,
        "segmentation fault",
        6,
        (2,),
    ),
    "deepspeed says with which code": case(
        """
        [2026-04-14 13:11:27,879] [INFO] [launch.py:428:sigkill_handler] Killing subprocess 13266
        [2026-04-14 13:11:27,885] [ERROR] [launch.py:434:sigkill_handler] ['/usr/bin/python3', '-u', 'main.py', '--local_rank=0'] exits with return code = -9
        """,
        "killed",
        2,
    ),
    # Other launchers.
    "torch.multiprocessing.spawn": case(
        """
        Traceback (most recent call last):
          File "/home/ada/train.py", line 90, in <module>
            mp.spawn(train, nprocs=2)
          File "/home/ada/env/lib/python3.12/site-packages/torch/multiprocessing/spawn.py", line 340, in spawn
            return start_processes(fn, args, nprocs, join, daemon, start_method="spawn")
        torch.multiprocessing.spawn.ProcessRaisedException:

        -- Process 1 terminated with the following error:
        Traceback (most recent call last):
          File "/home/ada/env/lib/python3.12/site-packages/torch/multiprocessing/spawn.py", line 90, in _wrap
            fn(i, *args)
          File "/home/ada/train.py", line 71, in train
            loss = criterion(y, labels)
        ValueError: Expected input batch_size (32) to match target batch_size (31).
        """,
        "ValueError",
        14,
        (1,),
    ),
    "accelerate, which marks the lines of its processes": case(
        """
        stderr: Traceback (most recent call last):
        stderr:   File "/home/ada/nlp.py", line 100, in training_function
        stderr:     raise ValueError("no data")
        stderr: ValueError: no data
        stderr: Traceback (most recent call last):
        stderr:   File "/home/ada/env/bin/accelerate", line 8, in <module>
        stderr:     sys.exit(main())
        stderr: torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
        subprocess.CalledProcessError: Command '['/home/ada/env/bin/python', 'nlp.py']' returned non-zero exit status 1.
        """,
        "ValueError",
        4,
    ),
    "Ray, where the exception of a worker is inside the driver's": case(
        """
        ray.exceptions.RayTaskError(ValueError): ray::_RayTrainWorker__execute.get_next() (pid=4711, ip=10.0.0.2)
          File "/home/ada/env/lib/python3.12/site-packages/ray/train/_internal/worker_group.py", line 33, in __execute
            raise skipped from exception_cause(skipped)
          File "/home/ada/ray_train.py", line 12, in train_loop
            check(batch)
        ValueError: empty batch
        """,
        "ValueError",
        6,
    ),
    "lines that begin with the name of a node": case(
        """
        worker-1: Traceback (most recent call last):
        worker-1:   File "/home/ada/train.py", line 7, in <module>
        worker-1:     config["layers"]
        worker-1: KeyError: 'layers'
        worker-0: [2026-04-14 13:11:27,879] [INFO] [launch.py:428:sigkill_handler] Killing subprocess 13266
        """,
        "KeyError",
        4,
    ),
    "Horovod under mpirun": case(
        """
        [1,1]<stderr>:Traceback (most recent call last):
        [1,1]<stderr>:  File "train.py", line 7, in <module>
        [1,1]<stderr>:    config["layers"]
        [1,1]<stderr>:KeyError: 'layers'
        [1,0]<stderr>:horovod.common.exceptions.HorovodInternalError: Horovod has been shut down.
        Process 1 exit with status code 1.
        """,
        "KeyError",
        4,
        (1,),
    ),
    "a server that puts a clock before each line": case(
        """
        (Worker pid=55) ERROR 11-26 10:00:00 [executor.py:597] Traceback (most recent call last):
        (Worker pid=55) ERROR 11-26 10:00:00 [executor.py:597]   File "/home/ada/worker.py", line 12, in load
        (Worker pid=55) ERROR 11-26 10:00:00 [executor.py:597]     shape[3]
        (Worker pid=55) ERROR 11-26 10:00:00 [executor.py:597] IndexError: tuple index out of range
        """,
        "IndexError",
        4,
    ),
    "a traceback drawn by rich": case(
        """
        ╭───────────────────── Traceback (most recent call last) ──────────────────────╮
        │ /home/ada/train.py:232 in main                                               │
        │                                                                              │
        │   229 │   model = build(config)                                              │
        │ ❱ 232 │   model.load(path)                                                   │
        ╰──────────────────────────────────────────────────────────────────────────────╯
        AttributeError: 'Net' object has no attribute 'load'
        """,
        "AttributeError",
        7,
    ),
    # Errors that the program survived.
    "a download that failed once, in a job that went on and was cancelled": case(
        "Traceback (most recent call last):\n"
        '  File "train.py", line 7, in log\n'
        "OSError: the server is busy\n"
        + "".join(f"step {step} loss 0.5\n" for step in range(60))
        + "slurmstepd: error: *** JOB 7 ON n15 CANCELLED AT 2026-11-13T04:10:12 ***\n",
        "cancelled",
        64,
    ),
    # Slurm ends the job.
    "cancelled by hand": case(
        """
        epoch 3 loss 0.41
        slurmstepd: error: *** JOB 25883692 ON n15 CANCELLED AT 2026-11-13T04:10:12 ***
        """,
        "cancelled",
        2,
    ),
    "cancelled by hand, after a rank had failed": case(
        """
        Traceback (most recent call last):
          File "train.py", line 9, in <module>
            step(batch)
        ValueError: bad batch
        slurmstepd: error: *** JOB 25883692 ON n15 CANCELLED AT 2026-11-13T04:10:12 ***
        """,
        "ValueError",
        4,
    ),
    "the time limit, while ranks wait for each other": case(
        f"""
        [rank0]:{WATCHDOG.format(0)}
        [rank1]:{WATCHDOG.format(1)}
        slurmstepd: error: *** JOB 7 ON n15 CANCELLED AT 2026-11-20T11:10:12 DUE TO TIME LIMIT ***
        """,
        "collective timeout",
        1,
        (0, 1),
    ),
    "the time limit, and the exceptions that follow from it": case(
        """
        slurmstepd: error: *** JOB 7 ON n15 CANCELLED AT 2026-11-20T11:10:12 DUE TO TIME LIMIT ***
        torch.distributed.elastic.multiprocessing.api.SignalException: Process 63 got signal: 15
        srun: error: n15: task 0: Exited with exit code 143
        """,
        "time limit",
        1,
    ),
    "a warning of conda, long before the time limit": case(
        """

        CommandNotFoundError: Your shell has not been properly configured to use 'conda activate'.
        To initialize your shell, run

            $ conda init <SHELL_NAME>

        \r  0%|          | 0/50\r 22%|##        | 11/50 [1:57:05<6:54:42]slurmstepd: error: *** JOB 42 ON n1 CANCELLED AT 2026-04-14T16:17:16 DUE TO TIME LIMIT ***
        """,
        "time limit",
        7,
    ),
    "preempted": case(
        "slurmstepd: error: *** JOB 91 ON n15 CANCELLED AT 2026-11-13T04:10:12 DUE TO PREEMPTION ***\n", "preempted", 1
    ),
    "a node failed": case(
        """
        [rank0]: RuntimeError: Connection reset by peer
        slurmstepd: error: *** JOB 91 ON n15 CANCELLED AT 2026-11-13T04:10:12 DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***
        """,
        "node failure",
        2,
    ),
    # The words around a line decide.
    "a download, which looks like an unreachable rank 0": case(
        """
        [rank0]: Traceback (most recent call last):
        [rank0]:   File "/home/ada/ddp/train.py", line 31, in <module>
        [rank0]:     data = torchvision.datasets.MNIST("data", download=True)
        [rank0]:   File "/home/ada/env/lib/python3.12/urllib/request.py", line 1347, in do_open
        [rank0]:     raise URLError(err)
        [rank0]: urllib.error.URLError: <urlopen error [Errno 101] Network is unreachable>
        """,
        "no internet",
        6,
        (0,),
    ),
    "a model's download, with a chain of exceptions": case(
        """
        Traceback (most recent call last):
          File "/home/ada/env/lib/python3.12/site-packages/urllib3/connection.py", line 203, in _new_conn
            sock = connection.create_connection(
        socket.gaierror: [Errno -2] Name or service not known

        The above exception was the direct cause of the following exception:

        Traceback (most recent call last):
          File "/home/ada/env/lib/python3.12/site-packages/urllib3/connectionpool.py", line 789, in urlopen
            response = self._make_request(
        urllib3.exceptions.NameResolutionError: <HTTPSConnection(host='huggingface.co', port=443)>: Failed to resolve 'huggingface.co'

        During handling of the above exception, another exception occurred:

        Traceback (most recent call last):
          File "/home/ada/ddp/train.py", line 12, in <module>
            model = AutoModel.from_pretrained("some/model")
        OSError: We couldn't connect to 'https://huggingface.co' to load this file
        """,
        "no internet",
        4,
    ),
    "the rendezvous at localhost": case(
        """
        [E socket.cpp:860] [c10d] The client socket has timed out after 60s while trying to connect to (localhost, 29400).
        Traceback (most recent call last):
          File "/home/ada/env/lib/python3.12/site-packages/torch/distributed/elastic/rendezvous/c10d_rendezvous_backend.py", line 155, in _create_tcp_store
            store = TCPStore(
        TimeoutError: The client socket has timed out after 60s while trying to connect to (localhost, 29400).
        """,
        "localhost",
        1,
    ),
    "an extension that was not built, said by all ranks": case(
        """
        [rank0]: ModuleNotFoundError: No module named 'pointops._C'
        [rank1]: ModuleNotFoundError: No module named 'pointops._C'
        """,
        "extension not built",
        1,
        (0, 1),
    ),
    "an extension that one rank does not have": case(
        """
        [rank1]: ModuleNotFoundError: No module named 'pointops._C'
        [rank0]: RuntimeError: Connection closed by peer [10.0.0.2]:4711
        """,
        "different software",
        1,
        (1,),
    ),
    "two torchruns on each of two nodes": case(
        """
        W1122 01:29:52.596000 13469 torch/distributed/run.py:874] Setting OMP_NUM_THREADS environment variable for each process to be 1 in default
        W1122 01:29:52.602000 13470 torch/distributed/run.py:874] Setting OMP_NUM_THREADS environment variable for each process to be 1 in default
        torch.distributed.DistNetworkError: The server socket has failed to listen on any local network address. port: 29500, code: -98, name: EADDRINUSE
        srun: error: n1: task 1: Exited with exit code 1
        """,
        "two torchruns",
        3,
    ),
    "two torchruns on each node, of a version that prints no process numbers": case(
        """
        WARNING:torch.distributed.run:
        Setting OMP_NUM_THREADS environment variable for each process to be 1 in default
        WARNING:torch.distributed.run:
        Setting OMP_NUM_THREADS environment variable for each process to be 1 in default
        [W socket.cpp:426] [c10d] The server socket has failed to bind to [::]:29500 (errno: 98 - Address already in use).
        RuntimeError: The server socket has failed to listen on any local network address (errno: 98 - Address already in use).
        srun: error: n2: task 3: Exited with exit code 1
        srun: error: n1: task 0: Exited with exit code 1
        """,
        "two torchruns",
        5,
    ),
    "one torchrun, and a program that was left over": case(
        """
        W1122 01:29:52.596000 13469 torch/distributed/run.py:874] Setting OMP_NUM_THREADS environment variable for each process to be 1 in default
        torch.distributed.DistNetworkError: The server socket has failed to listen on any local network address. port: 29500, code: -98, name: EADDRINUSE
        """,
        "address in use",
        2,
    ),
    "a file that another rank wrote": case(
        """
        [rank0]: saved /scratch/run/7.pt
        [rank1]: FileNotFoundError: [Errno 2] No such file or directory: '/scratch/run/7.pt'
        """,
        "no shared files",
        2,
        (1,),
    ),
    "a file that nobody wrote": case(
        "[rank1]: FileNotFoundError: [Errno 2] No such file or directory: '/data/digts.npz'\n",
        "FileNotFoundError",
        1,
        (1,),
    ),
    # A program that can't start.
    "the option of the old launcher": case(
        """
        usage: train.py [-h] [--local_rank LOCAL_RANK] [--epochs EPOCHS]
        train.py: error: unrecognized arguments: --local-rank=1
        usage: train.py [-h] [--local_rank LOCAL_RANK] [--epochs EPOCHS]
        train.py: error: unrecognized arguments: --local-rank=0
        E1128 10:11:12.131415 4242 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: 2) local_rank: 0 (pid: 4250) of binary: /home/ada/env/bin/python
        torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
        """,
        "--local-rank",
        2,
    ),
    "started with python": case(
        """
        Traceback (most recent call last):
          File "/home/ada/ddp/train.py", line 9, in <module>
            dist.init_process_group("nccl")
        ValueError: Error initializing torch.distributed using env:// rendezvous: environment variable RANK expected, but not set
        """,
        "rank not set",
        4,
    ),
    "srun and an MPI without PMI": case(
        """
        --------------------------------------------------------------------------
        The application appears to have been direct launched using "srun",
        but OMPI was not built with SLURM's PMI support and therefore cannot
        execute. There are several options for building PMI support under
        SLURM, depending upon the SLURM version you are using.
        --------------------------------------------------------------------------
        *** An error occurred in MPI_Init_thread
        *** on a NULL communicator
        *** MPI_ERRORS_ARE_FATAL (processes in this communicator will now abort,
        ***    and potentially your MPI job)
        [n12:31337] Local abort before MPI_INIT completed completed successfully, but am not able to aggregate error messages, and not able to guarantee that all other processes were killed!
        srun: error: n12: tasks 0-3: Exited with exit code 1
        """,
        "MPI without PMI",
        2,
    ),
    "too few slots": case(
        """
        --------------------------------------------------------------------------
        There are not enough slots available in the system to satisfy the 8
        slots that were requested by the application:

          python

        Either request fewer procs for your application, or make more slots
        available for use.
        --------------------------------------------------------------------------
        """,
        "too few slots",
        2,
    ),
    "a mistake in the program, in the last of two launches": case(
        """
        + srun python train.py --batch 512
        [rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.96 GiB.
        srun: error: n1: task 3: Exited with exit code 1
        + srun python train.py --batch 64
          File "train.py", line 232
            optim="adamw_bnb_8bit"
            ^
        SyntaxError: invalid syntax
        srun: error: n1: tasks 0-3: Exited with exit code 1
        """,
        "SyntaxError",
        8,
    ),
    "two processes that write into each other's words": case(
        """
          File "train.py", line 232
          File "train.py", line 232
                optim="adamw_bnb_8bit"
        optim="adamw_bnb_8bit"
                ^
        ^
        SyntaxErrorSyntaxError: : invalid syntaxinvalid syntax
        """,
        "SyntaxError",
        7,
    ),
    # Memory and devices.
    "a progress bar before the line": case(
        """
        epoch 1:  10%|#   | 1/10\rboot
        epoch 1:  20%|##  | 2/10\repoch 1:  30%|### | 3/10\repoch 1:  40%|####| 4/10
        [rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB.
        """,
        "out of GPU memory",
        3,
        (1,),
    ),
    "shared memory": case(
        """
        ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm).
        [rank0]: RuntimeError: DataLoader worker (pid 511) is killed by signal: Bus error. It is possible that dataloader's workers are out of shared memory. Please try to raise your shared memory limit.
        """,
        "shared memory",
        2,
        (0,),
    ),
    "parameters without a gradient": case(
        """
        [rank1]: Traceback (most recent call last):
        [rank1]:   File "/home/ada/ddp/train.py", line 40, in <module>
        [rank1]:     out = model(x)
        [rank1]: RuntimeError: Expected to have finished reduction in the prior iteration before starting a new one. This error indicates that your module has parameters that were not used in producing loss. You can enable unused parameter detection by passing the keyword argument `find_unused_parameters=True` to `torch.nn.parallel.DistributedDataParallel`
        [rank1]: Parameter indices which did not receive grad for rank 1: 4 5
        """,
        "unused parameters",
        4,
        (1,),
    ),
    "GPU tensors over MPI": case(
        """
        0: [1579244748.735971] [n1:56309:0]          mm_ep.c:76   UCX  DEBUG recv failed: Input/output error
        0: [n1:56309:2:56362] Caught signal 11 (Segmentation fault: address not mapped to object at address 0x20)
        0: ==== backtrace ====
        0:  0 /opt/openmpi/ucx/lib/libucs.so.0(ucs_handle_error+0x124) [0x2aab19f0a3a4]
        srun: error: n1: task 0: Segmentation fault
        0: slurmstepd: error: *** STEP 405737.0 ON n1 CANCELLED AT 2026-01-16T23:05:49 ***
        srun: error: n1: task 1: Terminated
        """,
        "GPU tensors over MPI",
        2,
        (0,),
    ),
    "weights that do not fit": case(
        """
        Traceback (most recent call last):
          File "/home/ada/train.py", line 44, in train
          File "/home/ada/env/lib/python3.11/site-packages/transformers/modeling_utils.py", line 4852, in _load_pretrained_model
            raise RuntimeError(f"Error(s) in loading state_dict for {model.__class__.__name__}:\\n\\t{error_msg}")
        RuntimeError: Error(s) in loading state_dict for BertForSequenceClassification:
        \tsize mismatch for classifier.weight: copying a param with shape torch.Size([3, 768]) from checkpoint, the shape in current model is torch.Size([2, 768]).
        """,
        "unfit checkpoint",
        5,
    ),
    # Exceptions while others are handled.
    "a look-up that failed in a package, and what ended the program": case(
        """
        [rank2]: Traceback (most recent call last):
        [rank2]:   File "/opt/envs/sea/lib/python3.11/site-packages/shelfstore/cache.py", line 31, in take
        [rank2]:     return self._open[key]
        [rank2]:            ~~~~~~~~~~^^^^^
        [rank2]: KeyError: ('/data/waves/run7.nc', 'w')

        [rank2]: During handling of the above exception, another exception occurred:

        [rank2]: Traceback (most recent call last):
        [rank2]:   File "/home/ada/waves/forecast.py", line 61, in save
        [rank2]:     store.write('/data/waves/run7.nc', result)
        [rank2]:   File "/opt/envs/sea/lib/python3.11/site-packages/shelfstore/cache.py", line 40, in write
        [rank2]:     handle = open(path, 'w')
        [rank2]: PermissionError: [Errno 13] Permission denied: '/data/waves/run7.nc'
        """,
        "PermissionError",
        14,
        (2,),
    ),
    "a package that says in its own words what it did not find": case(
        """
        Traceback (most recent call last):
          File "/home/ada/env/lib/python3.12/site-packages/zoo/auto.py", line 1034, in load
            kind = KINDS[settings["kind"]]
          File "/home/ada/env/lib/python3.12/site-packages/zoo/auto.py", line 737, in __getitem__
            raise KeyError(key)
        KeyError: 'okapi'

        During handling of the above exception, another exception occurred:

        Traceback (most recent call last):
          File "/home/ada/train.py", line 20, in <module>
            model = zoo.load("ada/okapi-7b")
          File "/home/ada/env/lib/python3.12/site-packages/zoo/auto.py", line 1036, in load
            raise ValueError(f"This version of zoo does not know {kind}")
        ValueError: This version of zoo does not know okapi
        """,
        "ValueError",
        15,
    ),
    "a program that says in its own words what it did not find": case(
        """
        Traceback (most recent call last):
          File "/home/ada/train.py", line 8, in optimizer_of
            return OPTIMIZERS[name]
        KeyError: 'adamz'

        During handling of the above exception, another exception occurred:

        Traceback (most recent call last):
          File "/home/ada/train.py", line 30, in <module>
            optimizer = optimizer_of(settings.optimizer)
          File "/home/ada/train.py", line 10, in optimizer_of
            raise SystemExit(f"There is no optimizer {name}") from None or ValueError(name)
        ValueError: There is no optimizer adamz
        """,
        "ValueError",
        13,
    ),
    "a column is missing, and closing the logger fails too": case(
        """
        Traceback (most recent call last):
          File "/opt/env/lib/python3.12/site-packages/tuner/cli.py", line 50, in main
            run(settings)
          File "/opt/env/lib/python3.12/site-packages/tuner/run.py", line 9, in run
            trainer.train()
          File "/opt/env/lib/python3.12/site-packages/tuner/trainer.py", line 90, in train
            for batch in self.batches():
          File "/opt/env/lib/python3.12/site-packages/tuner/data.py", line 77, in batches
            yield row["text"]
        KeyError: 'text'

        During handling of the above exception, another exception occurred:

        Traceback (most recent call last):
          File "/opt/env/bin/tune", line 8, in <module>
            sys.exit(main())
          File "/opt/env/lib/python3.12/site-packages/tuner/cli.py", line 53, in main
            logger.close()
        AttributeError: 'NoneType' object has no attribute 'close'
        """,
        "KeyError",
        10,
    ),
    "an exception that is the direct cause of another one": case(
        """
        Traceback (most recent call last):
          File "/home/ada/env/lib/python3.12/site-packages/frames/index.py", line 3805, in get_loc
            return self._engine.get_loc(key)
        KeyError: 'depth'

        The above exception was the direct cause of the following exception:

        Traceback (most recent call last):
          File "/home/ada/train.py", line 12, in <module>
            depth = table["depth"]
          File "/home/ada/env/lib/python3.12/site-packages/frames/index.py", line 3812, in get_loc
            raise KeyError(key) from error
        KeyError: 'depth'
        """,
        "KeyError",
        4,
    ),
    "a look-up fails in a package, and the others are gone while it is handled": case(
        """
        [rank1]: Traceback (most recent call last):
        [rank1]:   File "/home/ada/env/lib/python3.12/site-packages/vision/boxes.py", line 31, in label_of
        [rank1]:     return self.names[number]
        [rank1]: IndexError: list index out of range
        [rank1]: During handling of the above exception, another exception occurred:
        [rank1]: Traceback (most recent call last):
        [rank1]:   File "/home/ada/train.py", line 61, in <module>
        [rank1]:     dist.barrier()
        [rank1]: RuntimeError: [pair.cc:553] Connection closed by peer [10.0.0.2]:4711
        """,
        "IndexError",
        4,
        (1,),
    ),
    # GPUs that hang.
    "a GPU hangs behind a progress bar": case(
        f"""
         41%|####      | 366/903 [5:15:39<6:53:09, 46.16s/it]HW Exception by GPU node-3 (Agent handle: 0x63aa) reason :GPU Hang
        Aborted (core dumped)
        [rank2]:{WATCHDOG.format(2)}
        """,
        "GPU hang",
        1,
    ),
    "an Intel GPU is lost on one rank": case(
        """
        [rank3]: Traceback (most recent call last):
        [rank3]:   File "/home/ada/train.py", line 61, in <module>
        [rank3]:     loss.backward()
        [rank3]: RuntimeError: Native API failed. Native API returns: 20 (UR_RESULT_ERROR_DEVICE_LOST)
        [rank0]: RuntimeError: oneCCL: Broken pipe
        """,
        "GPU hang",
        4,
        (3,),
    ),
    # The program's own words above a sign.
    "C++ says what, and mpiexec names one process": case(
        """
        terminate called after throwing an instance of 'Reef::InputError'
          what():
        +++ REEF error
        I cannot understand line: CORALS LABEL=c TEMP=330
        [n5:47005] *** Process received signal ***
        [n5:47005] Signal: Aborted (6)
        terminate called after throwing an instance of 'Reef::InputError'
          what():
        +++ REEF error
        I cannot understand line: CORALS LABEL=c TEMP=330
        [n5:47006] *** Process received signal ***
        [n5:47006] Signal: Aborted (6)
        --------------------------------------------------------------------------
        mpiexec noticed that process rank 0 with PID 0 on node n5 exited on signal 6 (Aborted).
        --------------------------------------------------------------------------
        """,
        "C++ exception",
        2,
    ),
    "C++ of one rank under srun": case(
        """
        0: step 10
        1: step 10
        1: terminate called after throwing an instance of 'std::runtime_error'
        1:   what():  checkpoint basin.h5 has 12 layers, not 24
        srun: error: n5: task 1: Aborted (core dumped)
        srun: error: n5: task 0: Terminated
        """,
        "C++ exception",
        4,
        (1,),
    ),
    "C++ in which NCCL's watchdog speaks": case(
        f"""
        [rank1]:{WATCHDOG.format(1)}
        terminate called after throwing an instance of 'c10::DistBackendError'
          what():  [PG 0 Rank 1] Process group watchdog thread terminated with exception: {WATCHDOG.format(1)[60:]}
        srun: error: n5: task 1: Aborted (core dumped)
        [rank0]: Traceback (most recent call last):
        [rank0]:   File "/home/ada/train.py", line 9, in <module>
        [rank0]:     raise ValueError("no such layer")
        [rank0]: ValueError: no such layer
        """,
        "ValueError",
        8,
        (0,),
    ),
    "a watchdog ends its process, and the stack of C++ is no word of the program": case(
        f"""
        [rank2]:{WATCHDOG.format(2)}
        Exception raised from checkTimeout at /pytorch/torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:629 (most recent call first):
        frame #0: c10::Error::Error(c10::SourceLocation) + 0xa9 (0x7f15 in /env/lib/libc10.so)
        frame #1: clone + 0x41 (0x7f15 in /lib64/libc.so.6)

        srun: error: n1: task 2: Aborted (core dumped)
        """,
        "collective timeout",
        1,
        (2,),
    ),
    "only the text of an exception names the rank": case(
        f"""
        terminate called after throwing an instance of 'c10::DistBackendError'
          what():  [PG 0 Rank 1] Process group watchdog thread terminated with exception: [Rank 1]{WATCHDOG.format(1)[60:]}
        Exception raised from checkTimeout at /pytorch/torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:629 (most recent call first):
        frame #0: c10::Error::Error(c10::SourceLocation) + 0xa9 (0x7f15 in /env/lib/libc10.so)
        ./run.sh: line 14: 1916 Aborted                 (core dumped) $@
        """,
        "collective timeout",
        2,
        (1,),
    ),
    "NCCL says why below its exception, after retries that say nothing yet": case(
        """
        n7:2039:2056 [0] NCCL INFO socketPollConnect: connect returned Connection refused, retrying (1/34) after sleep for 100 msec
        [rank1]: Traceback (most recent call last):
        [rank1]:   File "/home/ada/train.py", line 34, in main
        [rank1]:     dist.barrier()
        [rank1]: torch.distributed.DistBackendError: NCCL error in: NCCLUtils.cpp:77, remote process exited or there was a network error, NCCL version 2.26.2
        [rank1]: ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.
        [rank1]: Last error:
        [rank1]: socketPollConnect: connect returned Connection refused, exceeded error retry count (35)
        srun: error: n7: task 1: Exited with exit code 1
        srun: error: n6: task 0: Terminated
        """,
        "NCCL network",
        8,
        (1,),
    ),
    "InfiniBand fails while NCCL connects, and the program said nothing": case(
        """
        [rank3]: Traceback (most recent call last):
        [rank3]:   File "/home/ada/train.py", line 34, in main
        [rank3]:     dist.barrier()
        [rank3]: torch.distributed.DistBackendError: NCCL error in: NCCLUtils.cpp:77, unhandled system error, NCCL version 2.26.2
        [rank3]: ncclSystemError: System call (e.g. socket, malloc) or external library call failed or device error.
        [rank3]: Last error:
        [rank3]: Call to ibv_modify_qp failed with error Connection timed out
        srun: error: n7: task 3: Exited with exit code 1
        """,
        "InfiniBand",
        7,
        (3,),
    ),
    "Ray's driver notices that a worker died": case(
        """
        Traceback (most recent call last):
          File "/home/ada/train.py", line 80, in main
            ray.get(jobs)
        ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.
        The actor is dead because its worker process has died. There are some potential root causes. (1) The process is killed by SIGKILL by OOM killer due to high memory usage. (3) The worker is crashed unexpectedly due to SIGSEGV.
        """,
        "worker process died",
        4,
    ),
    "wandb does not answer in time": case(
        """
        Traceback (most recent call last):
          File "/env/lib/python3.12/site-packages/wandb/sdk/mailbox/response_handle.py", line 118, in wait_async
            raise TimeoutError(
        TimeoutError: Timed out waiting for response on fern77

        During handling of the above exception, another exception occurred:

        Traceback (most recent call last):
          File "/home/ada/train.py", line 118, in main
            wandb.init(
        wandb.errors.errors.CommError: Run initialization has timed out after 90.0 sec.
        """,
        "tracker not reached",
        11,
    ),
    "a wait that was cancelled in a package, and what it says of that": case(
        """
        Traceback (most recent call last):
          File "/env/lib/python3.12/site-packages/tidewire/comm.py", line 205, in read
            frames = await stream.read(size)
        asyncio.exceptions.CancelledError

        During handling of the above exception, another exception occurred:

        Traceback (most recent call last):
          File "/env/lib/python3.12/site-packages/tidewire/core.py", line 328, in connect
            raise TimeoutError() from error
        TimeoutError

        The above exception was the direct cause of the following exception:

        Traceback (most recent call last):
          File "/home/ada/tides/start.py", line 10, in <module>
            tidewire.connect(address)
        OSError: Timed out during handshake with tcp://172.21.2.161:8786 after 30 s
        """,
        "OSError",
        18,
    ),
    "the name of an exception is torn from its text by the other process": case(
        """
        Traceback (most recent call last):
          File "/env/lib/python3.12/site-packages/tidewire/http.py", line 40, in session
            raise ValueError("no session")
        ValueErrorTraceback (most recent call last):
        : no session
          File "/env/lib/python3.12/site-packages/tidewire/http.py", line 40, in session
            raise ValueError("no session")

        During handling of the above exception, another exception occurred:

        Traceback (most recent call last):
          File "/home/ada/tides/start.py", line 10, in <module>
            tidewire.connect(address)
        tidewire.Error: buoy 7 does not answer
        """,
        "Error",
        14,
    ),
    "the last line of MPI's error stack tells why": case(
        """
         reading the depths from /scratch/ada/tides/depth.nc
        MPICH ERROR [Rank 5] [job id 40.0] [Tue Dec 12 17:52:24 2023] [n97] - Abort(404347151) (rank 5 in comm 0): Fatal error in PMPI_Send: Other MPI error, error stack:
        PMPI_Send(163)................: MPI_Send(buf=0x2857, count=1, MPI_INTEGER, dest=0, tag=2001, comm=0x84000001) failed
        MPID_Send(499)................:
        MPIDI_OFI_send_lightweight(34): OFI tagged injectdata failed (ofi_send.h:34:MPIDI_OFI_send_lightweight:Invalid argument)

        aborting job:
        Fatal error in PMPI_Send: Other MPI error, error stack:
        PMPI_Send(163)................: MPI_Send(buf=0x2857, count=1, MPI_INTEGER, dest=0, tag=2001, comm=0x84000001) failed
        MPIDI_OFI_send_lightweight(34): OFI tagged injectdata failed (ofi_send.h:34:MPIDI_OFI_send_lightweight:Invalid argument)
        srun: error: n97: task 5: Exited with exit code 255
        srun: error: n96: tasks 0,2,4: Terminated
        """,
        "error inside MPI",
        5,
        (5,),
    ),
    "a crash inside MPI, of which srun names the ranks": case(
        """
        [n49:31808] *** Process received signal ***
        [n49:31808] Signal: Segmentation fault (11)
        [n50:18819] Signal: Segmentation fault (11)
        [n49:31808] [ 3] /env/libmpi.so.40(NBC_Progress+0x164)[0x4000]
        srun: error: n49: task 0: Segmentation fault (core dumped)
        srun: error: n50: task 2: Segmentation fault (core dumped)
        srun: error: n50: task 3: Terminated
        """,
        "segmentation fault",
        5,
        (0, 2),
    ),
    "one traceback without a rank, and torchrun names the rank that failed": case(
        """
        Traceback (most recent call last):
          File "/home/ada/fit.py", line 16, in fit
            start = step // self.steps
        ZeroDivisionError: integer division or modulo by zero
        W0731 10:50:07.575000 324 torch/distributed/elastic/multiprocessing/api.py:897] Sending process 248 closing signal SIGTERM
        E0731 10:50:08.043000 324 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: 1) local_rank: 1 (pid: 249) of binary: /env/bin/python
        torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
        ============================================================
        Root Cause (first observed failure):
        [0]:
          rank      : 1 (local_rank: 1)
          exitcode  : 1 (pid: 249)
        ============================================================
        """,
        "ZeroDivisionError",
        4,
        (1,),
    ),
    "a program in Fortran calls MPI_Abort": case(
        """
             Program TIDES v.2.1 starts on 4May2026 at 10:40:16
             estimated error = 0.1E-04
         %%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%
             Error in routine  read_basin (1):
              bad line in namelist &grid: "  depth = 30, width=300,,"
         %%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%

             stopping ...
        Abort(1) on node 0 (rank 0 in comm 0): application called MPI_Abort(MPI_COMM_WORLD, 1) - process 0
        srun: Job step aborted: Waiting up to 32 seconds for job step to finish.
        slurmstepd: error: *** STEP 1693.0 ON n12 CANCELLED AT 2026-05-04T10:40:17 ***
        srun: error: n12: tasks 0-35: Killed
        """,
        "error of the program",
        4,
        (0,),
    ),
    "Cray's MPI names the rank that stopped": case(
        """
        > Error [FieldGroup] : In file 'field.cpp', line 1302 -> A grid must be defined for field 'ice' .

        MPICH ERROR [Rank 616] [job id 77.0] [Fri Dec 12 23:04:41 2025] [nid1411] - Abort(-1) (rank 616 in comm 0): application called MPI_Abort(MPI_COMM_WORLD, -1) - process 616
        srun: error: nid1411: task 616: Exited with exit code 255
        """,
        "error of the program",
        1,
        (616,),
    ),
    "Fortran's library says what it could not read": case(
        """
        At line 3070 of file gen.f (unit = 9, file = 'observed.prn')
        Fortran runtime error: End of file

        Error termination. Backtrace:
        #0  0x7f0 in ???
        --------------------------------------------------------------------------
        Primary job  terminated normally, but 1 process returned
        a non-zero exit code. Per user-direction, the job has been aborted.
        --------------------------------------------------------------------------
        """,
        "error of the program",
        2,
    ),
    "a program says what it misses, and srun tells its exit code": case(
        """
        reading settings.toml
        Error: settings.toml has no table [grid]
        srun: error: n1: task 0: Exited with exit code 2
        """,
        "error of the program",
        2,
    ),
    "an error that is only a number, above an exit code": case(
        """
        step 9 relative error 0.0012
        step 10 relative error 0.0011, error = 3e-4
        srun: error: n1: task 0: Exited with exit code 2
        """,
        "exit code",
        3,
        (0,),
    ),
    "an error at the start that the program survived": case(
        """
        Error in reading the old plan, a new one is made
        step 1
        step 2
        srun: error: n1: task 0: Exited with exit code 1
        """,
        "exit code",
        4,
        (0,),
    ),
    "the GPU's memory is full in a library of C++": case(
        """
        terminate called after throwing an instance of 'thrust::system::system_error'
          what():  parallel_for failed: out of memory
        Aborted (core dumped)
        """,
        "out of GPU memory",
        2,
    ),
    "Fortran's words for a process that was ended from outside": case(
        """
        [n1:4711] *** An error occurred in MPI_Recv
        [n1:4711] *** MPI_ERR_TRUNCATE: message truncated
        forrtl: error (78): process killed (SIGTERM)
        Image              PC                Routine            Line        Source
        srun: error: n1: task 3: Exited with exit code 1
        """,
        "mismatched collectives",
        2,
    ),
    # A rank that the others name.
    "Horovod names the rank that is missing": case(
        """
        rank 0 completed step...
        [2026-02-02 21:19:07.345988: W /tmp/horovod/common/stall_inspector.cc:105] One or more tensors were submitted to be reduced, gathered or broadcasted by subset of ranks and are waiting for remainder of ranks for more than 60 seconds.
        Missing ranks:
        0: [cond_1/then/_10/HorovodAllreduce_grads_0]

        Traceback (most recent call last):
          File "train.py", line 45, in <module>
            model.fit(x=x, y=y)
        tensorflow.python.framework.errors_impl.UnknownError:  Horovod has been shut down. This was caused by an exception on one of the ranks
        --------------------------------------------------------------------------
        mpirun detected that one or more processes exited with non-zero status, thus causing
        the job to be terminated. The first process to do so was:

          Process name: [[56671,1],1]
          Exit code:    1
        --------------------------------------------------------------------------
        """,
        "missing rank",
        4,
        (0,),
    ),
    "an older Horovod names the rank that is missing": case(
        """
        [1,0]<stderr>:Stalled ops:
        [1,0]<stderr>:DistributedOptimizer_Allreduce/grads_0 [missing ranks: 3]
        [1,1]<stderr>:Aborted: Horovod has been shut down. This was caused by an exception on one of the ranks
        """,
        "missing rank",
        2,
        (3,),
    ),
    "the watchdogs name the rank whose collective timed out": case(
        """
        [rank2]:[E703 21:51:54.112 ProcessGroupNCCL.cpp:1987] [PG ID 0 PG GUID 0(default_pg) Rank 2] Received a dump signal due to a collective timeout from  rank 3 and we will try our best to dump the debug info. Last enqueued NCCL work: 561, last completed NCCL work: 561.
        [rank1]:[E703 21:51:54.112 ProcessGroupNCCL.cpp:1987] [PG ID 0 PG GUID 0(default_pg) Rank 1] Received a dump signal due to a collective timeout from  rank 3 and we will try our best to dump the debug info. Last enqueued NCCL work: 561, last completed NCCL work: 561.
        W0703 21:51:58.770000 924 torch/distributed/elastic/multiprocessing/api.py:1014] Sending process 1723 closing signal SIGTERM
        E0703 21:52:01.551000 924 torch/distributed/elastic/multiprocessing/api.py:988] failed (exitcode: 1) local_rank: 2 (pid: 1722) of binary: /venv/bin/python
        [1]:
          time      : 2026-07-03_21:52:01
          rank      : 1 (local_rank: 1)
          exitcode  : 1 (pid: 1721)
        Root Cause (first observed failure):
        [0]:
          time      : 2026-07-03_21:51:58
          rank      : 2 (local_rank: 2)
          exitcode  : 1 (pid: 1722)
        """,
        "collective timeout",
        1,
        (3,),
    ),
    "the exception of the rank whose exit code mpirun names": case(
        """
        Traceback (most recent call last):
          File "train.py", line 45, in <module>
            model.fit(x=x, y=y)
        horovod.common.exceptions.HorovodInternalError: Connection reset by peer
        --------------------------------------------------------------------------
          Process name: [[56671,1],1]
          Exit code:    1
        --------------------------------------------------------------------------
        """,
        "peer left",
        4,
    ),
    # Two kinds of memory.
    "the kernel kills a process for the node's memory": case(
        """
        /var/spool/slurmd/job188/slurm_script: line 46: 21130 Killed                  python3 train.py
        slurmstepd: error: Detected 1 oom_kill event in StepId=188.batch. Some of the step tasks have been OOM Killed.
        """,
        "out of memory",
        2,
    ),
}

HEALTHY = {
    "a rank of Horovod that arrived late": (
        "epoch 1 loss 0.3\nMissing ranks:\n2: [allreduce.layer.weight]\nepoch 2 loss 0.2\nepoch 3 loss 0.1\n"
    ),
    "a run that ended": "epoch 1 loss 0.3\nepoch 2 loss 0.2\n",
    "a package that could not log": (
        "epoch 9: 100%|####| 860/860\nwandb: ERROR context deadline exceeded\nwandb: Synced 6 W&B file(s)\n"
    ),
    "warnings with a clock that counts from 1970": (
        "W0000 00:00:1755715039.994226 1917530 op_level_cost_estimator.cc:699] Error in PredictCost() for the op\n"
        "E0000 00:00:1737839649.620236 1899436 cuda_dnn.cc:8310] Unable to register cuDNN factory\nstep 1\n"
    ),
}
"""Logs in which nothing failed."""

WORDS = {
    "out of memory": (
        "slurmstepd: error: Detected 1 oom_kill event in StepId=77.0. Some of the step tasks have been OOM Killed.",
        "srun: error: gpu07: task 3: Out Of Memory",
        "slurmstepd: error: Job 77 exceeded memory limit (4198400 > 4194304), being killed",
        "terminate called after throwing an instance of 'std::bad_alloc'",
        "[512.7] Memory cgroup out of memory: Killed process 77 (python3) total-vm:1433876kB, anon-rss:749216kB",
        "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.",
        "numpy.core._exceptions._ArrayMemoryError: Unable to allocate 9.1 GiB: MemoryError: ",
        "OOM when allocating tensor with shape[4096,4096] and type float on /device:CPU:0 by allocator cpu",
        "forrtl: severe (41): insufficient virtual memory",
    ),
    "out of GPU memory": (
        "terminate called after throwing an instance of 'std::bad_alloc': what(): out_of_memory: CUDA error",
        "[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has 79.1 GiB",
        "node01:77:91 [0] enqueue.cc:1410 NCCL WARN Cuda failure 2 'out of memory'",
        "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 640.00 MiB. GPU 1 has a total capacity of 63.98 GiB",
        "OOM when allocating tensor with shape[4096,4096] and type float on /device:GPU:0 by allocator GPU_0_bfc",
        "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory allocating 8589934592 bytes.",
        "RuntimeError: NPU out of memory. Tried to allocate 1.10 GiB (NPU 5; 60.97 GiB total capacity)",
        "RuntimeError: Native API failed. Native API returns: 39 (UR_RESULT_ERROR_OUT_OF_DEVICE_MEMORY)",
    ),
    "GPU hang": (
        "HW Exception by GPU node-2 (Agent handle: 0x55d0c1) reason :GPU Hang",
        "[ 9182.4] amdgpu 0000:c1:00.0: amdgpu: GPU reset begin!",
        "[ 9181.1] amdgpu 0000:c1:00.0: amdgpu: ring comp_1.0.0 timeout, signaled seq=7, emitted seq=9",
        "RuntimeError: level_zero backend failed with error: 20 (UR_RESULT_ERROR_DEVICE_LOST)",
        "[ 77.8] i915 0000:03:00.0: [drm] GPU HANG: ecode 12:1:85dffffb, in python3 [4711]",
        ":0:rocdevice.cpp:2984: Callback: Queue 0x7f error: HSA_STATUS_ERROR_EXCEPTION: An HSAIL operation resulted in "
        "a hardware exception. code: 0x1016",
        "RTS_HWTS: aicore exception, slot_id=31, stream_id=3",
        "[Error]: The vector core execution is abnormal.",
    ),
    "C++ exception": (
        "terminate called after throwing an instance of 'Grid::Broken'",
        "libc++abi: terminating due to uncaught exception of type tides::ReadError: basin.in: line 4",
    ),
    "error of the program": (
        "forrtl: severe (24): end-of-file during read, unit 5, file /home/ada/tides/basin.in",
        "Fortran runtime error: Index '9' of dimension 1 of array 'depth' above upper bound of 8",
        "ERROR STOP basin.in has no line with a depth",
    ),
    "waited in vain": (
        "[rank1]:[E325 11:49:13.1 ProcessGroupNCCL.cpp:1316] [PG 0 Rank 1] Received a global timeout from another rank "
        "and will start to dump the debug info. Last enqueued NCCL work: 5, last completed NCCL work: 5.",
        "[rank5]:[E703 17:54:18.8 ProcessGroupNCCL.cpp:1922] [PG ID 0 Rank 5] Observed flight recorder dump signal from "
        "another rank via TCPStore.",
    ),
    "address in use": (
        "RuntimeError: [c10d] The server socket has failed to listen on [::]:29500 "
        "(errno: 98 - Address already in use).",
        "OSError: [Errno 98] Address already in use",
    ),
    "unreachable node": (
        "[W1 socket.cpp:697] [c10d] The IPv6 network addresses of (gpu77, 29500) cannot be retrieved "
        "(gai error: -2 - Name or service not known).",
        "DistNetworkError: The client socket has failed to connect to any network address of (gpu77, 29500). "
        "The client socket has failed to connect to gpu77:29500 (errno: 104 - Connection reset by peer).",
        "DistNetworkError: The client socket has timed out after 60000ms while trying to connect to (10.3.0.7, 4711).",
        "torch.distributed.elastic.rendezvous.api.RendezvousConnectionError: "
        "The connection to the C10d store has failed.",
        "[W1 socket.cpp:764] [c10d] The client socket has failed to connect to gpu77:29500 "
        "(errno: 111 - Connection refused).",
    ),
    "localhost": ("TimeoutError: The client socket has timed out after 60s while trying to connect to (127.0.0.1, 4711).",),
    "mismatched collectives": (
        "RuntimeError: [/pytorch/gloo/gloo/transport/tcp/pair.cc:456] op.preamble.length <= op.nbytes. 400 vs 4",
        "mpi4py.MPI.Exception: MPI_ERR_TRUNCATE: message truncated",
    ),
    "mismatched models": (
        "RuntimeError: DDP expects same model across all ranks, but Rank 0 has 62 params, while rank 1 has 60.",
        "RuntimeError: [1]: params[0] in this process with sizes [10] appears not to match; parameters are "
        "inconsistent across ranks",
    ),
    "unused parameters": ("RuntimeError: Expected to mark a variable ready only once. This error is caused by",),
    "wrong GPU binding": (
        'backend="nccl" cannot be had here: gpu01 has 1 GPU for 2 ranks, and NCCL wants one for each.',
        "node01:77:91 [0] init.cc:1057 NCCL WARN Multiple Ranks are using the same GPU/Partition : rank 1 and rank 0",
        "RuntimeError: CUDA error: invalid device ordinal",
        "RuntimeError: CUDA error: CUDA-capable device(s) is/are busy or unavailable",
    ),
    "no GPU": (
        "RuntimeError: No CUDA GPUs are available",
        "RuntimeError: HIP error: no ROCm-capable device is detected",
        "ValueError: ProcessGroupNCCL is only supported with GPUs, no GPUs found!",
        "RuntimeError: Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU",
        "RuntimeError: Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False.",
    ),
    "torch without CUDA": (
        "AssertionError: Torch not compiled with CUDA enabled",
        "RuntimeError: Distributed package doesn't have NCCL built in",
    ),
    "old driver": (
        "UserWarning: CUDA initialization: The NVIDIA driver on your system is too old (found version 12020).",
        "RuntimeError: CUDA driver version is insufficient for CUDA runtime version",
    ),
    "unfit kernels": (
        "torch.AcceleratorError: CUDA error: no kernel image is available for execution on the device",
        '"hipErrorNoBinaryForGpu: Unable to find code object for all current devices!"',
        "NVIDIA X with CUDA capability sm_130 is not compatible with the current PyTorch installation.",
    ),
    "broken GPU": (
        "[77.1] NVRM: Xid (PCI:0000:3b:00): 79, pid=7777, name=python, GPU has fallen off the bus.",
        "torch.AcceleratorError: CUDA error: uncorrectable ECC error encountered",
        "Unable to determine the device handle for GPU0000:3B:00.0: Unknown Error",
        "[77.1] NVRM: Xid (PCI:0000:3b:00): 119, pid=7777, name=python, Timeout waiting for RPC from GSP0!",
        "hipErrorECCNotCorrectable",
    ),
    "illegal memory access": (
        "torch.AcceleratorError: CUDA error: an illegal memory access was encountered",
        "torch.AcceleratorError: CUDA error: device-side assert triggered",
        "torch.AcceleratorError: CUDA error: misaligned address",
        "hipErrorIllegalAddress: HSA_STATUS_ERROR_MEMORY_APERTURE_VIOLATION",
        "Memory access fault by GPU node-4 (Agent handle: 0x55) on address 0x7f00. Reason: Unknown.",
    ),
    "CUDA after a fork": ("RuntimeError: Cannot re-initialize CUDA in forked subprocess. To use CUDA with",),
    "no main guard": ("        An attempt has been made to start a new process before the",),
    "NCCL interface": (
        "ncclSocketInit: connecting to address  with family 59936 is neither AF_INET(2) nor AF_INET6(10)",
        "RuntimeError: [enforce fail at /pytorch/gloo/transport/tcp/device.cc:84] ifa != nullptr. "
        "Unable to find address for: ib9",
    ),
    "InfiniBand": (
        "gpu07:77:91 [0] net_ib.cc:1295 NCCL WARN NET/IB: Got completion from peer 10.0.0.7<4711> with status=12 "
        "opcode=129 len=0 vendor err 129",
    ),
    "NCCL network": (
        "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.",
        "n7:77:91 [0] proxy.cc:1100 NCCL WARN Socket recv failed while polling for opId=0x7f45",
        "NET/OFI Request 0x7f completed with error. Unresponsive receiver (reachable by EFA device but handshake failed)",
    ),
    "worker process died": (
        "concurrent.futures.process.BrokenProcessPool: A process in the process pool was terminated abruptly.",
    ),
    "NCCL's own error": (
        "torch.distributed.DistBackendError: NCCL error, unhandled cuda error (run with NCCL_DEBUG=INFO for details)",
        "ncclInvalidUsage: This usually reflects invalid usage of NCCL library.",
        "[rank7]:[E1212 12:10:10.1 compiler_depend.ts:1675] [Rank 7] HCCL watchdog thread terminated with exception:",
    ),
    "MPI's own error": ("Fatal error in PMPI_Bcast: Other MPI error, error stack:",),
    "collective timeout": (
        WATCHDOG.format(1),
        "RuntimeError: Rank 1 failed to pass monitoredBarrier in 1800000 ms",
        "[rank0]:[E813 12:25:31.2 ProcessGroupNCCL.cpp:1746] [PG ID 0 Rank 0] Received a dump signal due to a collective "
        "timeout from this local rank and we will try our best to dump the debug info.",
        "EI0002: The wait execution of the Notify register times out. Reason: The Notify register has not received the "
        "Notify record from remote rank [3].",
        "[rank1]: RuntimeError: NCCL communicator: Some NCCL operations have failed or timed out.",
    ),
    "peer left": (
        "[rank1]: RuntimeError: [pair.cc:553] Connection closed by peer [10.0.0.1]:4711",
        "[rank3]: The TCPStore server has shut down too early",
        "[1,7]<stderr>:An MPI communication peer process has unexpectedly disconnected.  This",
        "Aborted: Horovod has been shut down. This was caused by an exception on one of the ranks",
    ),
    "different software": (
        "ModuleNotFoundError: No module named 'numpy._core'",
        "ImportError: /lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.38' not found (required by libtorch_cpu.so)",
        "ValueError: unsupported pickle protocol: 5",
        "node01:77:91 [0] init.cc:1700 NCCL WARN NCCL version mismatch between ranks",
    ),
    "extension not built": (
        "ModuleNotFoundError: No module named 'MultiScaleDeformableAttention_ext'",
        "OSError: CUDA_HOME environment variable is not set. Please set it to your CUDA install root.",
        "ImportError: cannot import name '_C' from 'detectron2'",
    ),
    "missing module": ("/usr/bin/python3: No module named torchrun",),
    "missing library": (
        "ImportError: libcudart.so.11.0: cannot open shared object file: No such file or directory",
    ),
    "wrong processor": ("/home/ada/bin/python: cannot execute binary file: Exec format error",),
    "command not found": (
        "slurmstepd-c1: error: execve(): torchrun: No such file or directory",
        "srun: error: task 0 launch failed: Slurmd could not execve job",
        "mpirun was unable to find the specified executable file, and therefore did not launch the job.",
        "/var/spool/slurmd/job77/slurm_script: line 9: torchrun: command not found",
    ),
    "no shared files": (
        "slurmstepd: error: couldn't chdir to `/home/ada/run': No such file or directory: going to /tmp instead",
    ),
    "wrong arguments": (
        "train.py: error: unrecognized arguments: --epoch 3",
        "train.py: error: the following arguments are required: --data",
    ),
    "rank not set": ("KeyError: 'LOCAL_RANK'",),
    "wrong rank count": (
        "RuntimeError: [enforce fail at gloo/context.cc:23] rank < size. 2 vs 2",
        "torch.distributed.elastic.rendezvous.api.RendezvousTimeoutError",
    ),
    "MPI without PMI": (
        "[n1:3717] OPAL ERROR: Unreachable in file pmix3x_client.c at line 111",
        "No PMIx server was reachable, but a PMI1/2 was detected.",
    ),
    "too few slots": ("All nodes which are allocated for this job are already filled.",),
    "no ssh between nodes": (
        "ada@n2: Permission denied (publickey,password).",
        "ORTE was unable to reliably start one or more daemons.",
    ),
    "no such request": (
        "sbatch: error: Batch job submission failed: Invalid account or account/partition combination specified",
        "srun: error: Requested node configuration is not available",
        "srun: error: Unable to create step for job 7: Invalid generic resource (gres) specification",
        "srun: error: Unable to create step for job 77: More processors requested than permitted",
    ),
    "disk full": (
        "OSError: [Errno 122] Disk quota exceeded: '/home/ada/.cache/huggingface'",
        "OSError: [Errno 28] No space left on device",
    ),
    "shared memory": (
        "node01:77:91 [0] include/shm.h:48 NCCL WARN Error while creating shared memory segment /dev/shm/nccl-x",
        "Bus error (core dumped) in a worker of the DataLoader",
    ),
    "data worker ended": ("RuntimeError: DataLoader worker (pid 77) is killed by signal: Killed.",),
    "no internet": (
        "wandb: Network error (ConnectTimeout), entering retry loop. https://api.wandb.ai timed out",
        "huggingface_hub.errors.LocalEntryNotFoundError: An error happened while trying to locate the file",
    ),
    "no access to the model": (
        "huggingface_hub.errors.GatedRepoError: 401 Client Error. Access to model meta-llama/Llama-3 is restricted.",
        "wandb.errors.UsageError: api_key not configured (no-tty). call wandb.login(key=[your_api_key])",
    ),
    "broken file": ("RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory",),
    "unfit checkpoint": ("RuntimeError: Error(s) in loading state_dict for Net:",),
    "conda not active": ("CondaError: Run 'conda init' before 'conda activate'",),
    "file already there": ("FileExistsError: [Errno 17] File exists: '/scratch/ada/run'",),
    "time limit": ("slurmstepd: error: *** JOB 77 ON gpu01 CANCELLED AT 2027-01-01T00:10:03 DUE TO TIME LIMIT ***",),
    "cancelled": ("slurmstepd: error: *** JOB 77 ON gpu01 CANCELLED AT 2027-01-01T00:10:03 ***",),
    "preempted": ("slurmstepd: error: *** STEP 77.0 ON gpu01 CANCELLED AT 2027-01-01T00:10:03 DUE TO PREEMPTION ***",),
    "node failure": (
        "srun: error: Node failure on gpu07",
        "srun: error: Task launch for StepId=77.0 failed on node gpu07: Communication connection failure",
    ),
    "too many open files": ("OSError: [Errno 24] Too many open files",),
    "file system failed": ("OSError: [Errno 116] Stale file handle",),
    "GPU tensors over MPI": ("[n1:77] Caught signal 11 (Segmentation fault: invalid permissions) in libuct_cuda ucp_rndv",),
    "segmentation fault": (
        "[n1:77] *** Process received signal *** Segmentation fault (11) in libmpi.so",
        "forrtl: severe (174): SIGSEGV, segmentation fault occurred",
        "/var/spool/slurm_script: line 9:  77 Segmentation fault      (core dumped) python train.py",),
    "bus error": ("line 9: 77 Bus error               (core dumped) python train.py",),
    "aborted": (
        "terminate called without an active exception",
        "line 9: 77 Aborted                 (core dumped) python train.py",),
    "killed": ("/var/spool/slurm_script: line 9:  77 Killed                  python train.py",),
    "interrupted": ("KeyboardInterrupt",),
    "terminated": (
        "slurmstepd: error: *** STEP 77.0 ON gpu01 CANCELLED AT 2027-01-01T00:10:03 ***",
        "torch.distributed.elastic.multiprocessing.api.SignalException: Process 63 got signal: 15",
    ),
}  # fmt: skip
"""The name of a failure → lines that report it, in words that the recorded logs do not have."""
