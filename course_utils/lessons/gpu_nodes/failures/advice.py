"""What each failure means, what to do about it, and where to read on."""

from dataclasses import dataclass

TORCHRUN = "https://docs.pytorch.org/docs/stable/elastic/run.html"
DDP = "https://docs.pytorch.org/docs/stable/notes/ddp.html"
CUDA = "https://docs.pytorch.org/docs/stable/notes/cuda.html"
DATA = "https://docs.pytorch.org/docs/stable/data.html"
PROCESSES = "https://docs.pytorch.org/docs/stable/notes/multiprocessing.html"
INSTALL_TORCH = "https://pytorch.org/get-started/locally/"
EXTENSIONS = "https://docs.pytorch.org/docs/stable/cpp_extension.html"
NCCL_VARIABLES = "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html"
NCCL_TROUBLE = "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html"
XID = "https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html"
SBATCH = "https://slurm.schedmd.com/sbatch.html"
SRUN = "https://slurm.schedmd.com/srun.html"
SLURM_MPI = "https://slurm.schedmd.com/mpi_guide.html"
OPEN_MPI = "https://docs.open-mpi.org/en/v5.0.8/launching-apps/"
HUB_VARIABLES = "https://huggingface.co/docs/huggingface_hub/package_reference/environment_variables"


@dataclass(frozen=True)
class PageSection:
    """A section of one of the course's own pages: the file, and its heading."""

    file: str
    heading: str

    def __str__(self) -> str:
        return f"{self.file}, section “{self.heading}”"


_MAIN, _FURTHER, _PART_2 = (f"notebooks/13_gpu_nodes{end}.ipynb" for end in ("", "_further", "_part_2"))
WHO_AM_I = PageSection(_MAIN, "A launcher tells each process who it is")
OWN_GPU = PageSection(_MAIN, "The processes meet, and each takes its own GPU")
RESUMES = PageSection(_MAIN, "A process dies, and training resumes")
TIME_IS_UP = PageSection(_MAIN, "The time is up, and all ranks stop after the same step")
READING = PageSection(_FURTHER, "When the launch fails")
ON_SEVERAL_NODES = PageSection(_FURTHER, "torchrun on several nodes")
NCCL_LOG = PageSection(_PART_2, "NCCL's log tells you which path it took")
HANGS = PageSection("notebooks/14_profiling_further.ipynb", "When nothing moves any more")
COLLECTIVES = PageSection("notebooks/04_messages.ipynb", "Collectives")
DIVERGED = PageSection("notebooks/06_data_parallel.ipynb", "Different weights, and no error message")
FITS = PageSection("notebooks/11_hybrid_and_sharded_part_2.ipynb", "What fits on how many GPUs?")


@dataclass(frozen=True)
class Advice:
    """What a failure means for its reader.

    Attributes:
        why: what happened, in a sentence or two.
        next: what to do.
        page: where to read on, an address or a section of the course.
    """

    why: str
    next: str
    page: str | PageSection


ADVICE = {
    "wrong rank count": Advice(
        "The number of processes that met is not the one that was announced: some never started, or one has a rank "
        "that is too high.",
        "Start the command on every node, with the same --nnodes, and with a --node-rank of its own for each node.",
        ON_SEVERAL_NODES,
    ),
    "address in use": Advice(
        "Another program already listens at the port where rank 0 wants to wait for the others.",
        "Look for a run of yours that was left over (`ss -ltnp`), and end it. On a node that you share, choose a "
        "different --master-port for each job.",
        TORCHRUN,
    ),
    "two torchruns": Advice(
        "torchrun was started more than once on a node, and only one of them can listen at the port.",
        "Start one torchrun for each node (`srun --ntasks-per-node=1 torchrun …`); it starts the processes of the node "
        "itself. A different port would not help.",
        ON_SEVERAL_NODES,
    ),
    "mismatched collectives": Advice(
        "The ranks are not in the same collective, or not with the same shape, because they took different branches or "
        "have batches of different sizes.",
        "Compare the operations and shapes that the ranks report. Look for an `if` on the rank, and for a last batch "
        "that only some ranks have.",
        COLLECTIVES,
    ),
    "mismatched models": Advice(
        "The ranks did not build the same model, and DDP needs the same parameters in the same order everywhere.",
        "Print the shapes of `model.named_parameters()` on each rank, and compare them.",
        DDP,
    ),
    "unused parameters": Advice(
        "Some parameters had no gradient in a step (or had it twice), so DDP waited for gradients that never came.",
        "Leave the unused layers out of the model, or pass find_unused_parameters=True to DistributedDataParallel. "
        "TORCH_DISTRIBUTED_DEBUG=DETAIL prints the names of the parameters.",
        DDP,
    ),
    "out of memory": Advice(
        "The memory of the node was used up, or the part of it that the job may use. A process was refused more, or "
        "the kernel killed it. This is the processor's memory, not that of a GPU.",
        "Ask the scheduler for more (Slurm: --mem, LSF: -M and rusage[mem=…], PBS: mem=…, Grid Engine: h_vmem=…), or "
        "use fewer workers of the DataLoader and fewer ranks on the node. If memory grows from step to step, look for "
        "what the program keeps. Under Slurm, `sacct -j JOB --format=JobID,MaxRSS,ReqMem` shows how much it used.",
        READING,
    ),
    "out of GPU memory": Advice(
        "A rank asked for more memory of its GPU than is left there.",
        "Use smaller batches or shorter sequences, recompute activations, or shard the model. Look with `nvidia-smi` "
        "whether a different process has a part of this GPU. If memory grows from step to step, look for tensors that "
        "are kept.",
        FITS,
    ),
    "shared memory": Advice(
        "The workers of a DataLoader, or NCCL, hand over data through /dev/shm, and it is full. Containers have 64 MB "
        "of it unless told otherwise.",
        "Check `df -h /dev/shm`. Start the container with --shm-size=8g or --ipc=host, or use fewer workers "
        "(num_workers).",
        DATA,
    ),
    "data worker ended": Advice(
        "A worker process of a DataLoader ended, most often because the machine's memory was full.",
        "Run once with num_workers=0, which shows an exception if there is one. Otherwise use fewer workers, or ask "
        "for more memory (--mem).",
        DATA,
    ),
    "worker process died": Advice(
        "A process that worked for the program died, and could not say why: its memory may have been used up, it may "
        "have crashed, or somebody ended it. This line is only how its parent noticed.",
        "Read the lines below this one, which may list what is known. Look for “Out of memory” in `dmesg` "
        "on the node, at the memory of the job and of the container (--shm-size), and at what the worker itself wrote; "
        "Ray keeps that in /tmp/ray/session_latest/logs.",
        READING,
    ),
    "disk full": Advice(
        "A file could not be written, because the disk is full or your quota is used up.",
        "Check with `df -h`, `df -i` and `quota -s` (or your site's own command), and move data, checkpoints and "
        "caches (HF_HOME, TORCH_HOME, PIP_CACHE_DIR, TMPDIR) to a larger file system.",
        HUB_VARIABLES,
    ),
    "different software": Advice(
        "A rank or a library was built for other versions than those it meets here.",
        "Start all ranks from one environment that every node sees, print the versions at the start of the program, "
        "and install packages that were built for one another.",
        INSTALL_TORCH,
    ),
    "extension not built": Advice(
        "A package has a part in C++ or CUDA, and that part was not built for this Python, or cannot be built here.",
        "Install the package again in this environment, with a compiler and the CUDA toolkit loaded (CUDA_HOME), and "
        "not by copying its source folder.",
        EXTENSIONS,
    ),
    "missing module": Advice(
        "The Python that was started does not have this module.",
        "Check in the job script that the right environment is active (`which python`), on every node, and install the "
        "module there.",
        "https://docs.python.org/3/tutorial/venv.html",
    ),
    "missing library": Advice(
        "A shared library that the program needs is not found on this node.",
        "Load the same modules in the job script as when you installed (`module list`), or add the library's folder to "
        "LD_LIBRARY_PATH. `ldd FILE` shows what is missing.",
        INSTALL_TORCH,
    ),
    "wrong processor": Advice(
        "A program was built for a different kind of processor than the one in this node.",
        "Build or install it on such a node, or ask for the kind of node that it was built on (--constraint).",
        SBATCH,
    ),
    "command not found": Advice(
        "The shell or Slurm did not find the program that it should start.",
        "Load the modules and activate the environment inside the job script, or write the full path. `which NAME` on "
        "the node shows what is found.",
        SBATCH,
    ),
    "permission denied": Advice(
        "The file exists, but it may not be executed.",
        "Make it executable (`chmod +x FILE`), or start it with its interpreter (`python FILE`).",
        SBATCH,
    ),
    "wrong arguments": Advice(
        "The program does not know an option that it was given, or lacks one that it needs.",
        "Compare the command with `python train.py --help`. Options for torchrun go before the program's name, and the "
        "program's own after it.",
        TORCHRUN,
    ),
    "--local-rank": Advice(
        "The launcher passes the local rank as the option --local-rank, and the program doesn't know it under this "
        "name.",
        "Start it with torchrun, and read int(os.environ['LOCAL_RANK']) in the program instead of an option. If you "
        "can't change it, accept both names: add_argument('--local-rank', '--local_rank', type=int).",
        TORCHRUN,
    ),
    "rank not set": Advice(
        "The program asked the environment who it is, and found nothing, because no launcher started it.",
        "Start it with torchrun, not with python. If srun starts it, set RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR and "
        "MASTER_PORT from Slurm's variables.",
        WHO_AM_I,
    ),
    "MPI without PMI": Advice(
        "srun started the processes, and the MPI library cannot ask Slurm who they are, because the two have no common "
        "interface (PMI).",
        "See what Slurm offers with `srun --mpi=list`, and choose one that your MPI was built for, such as `srun "
        "--mpi=pmix`. Or start with mpirun inside the job. For Intel MPI, set I_MPI_PMI_LIBRARY.",
        SLURM_MPI,
    ),
    "too few slots": Advice(
        "mpirun was asked for more processes than it has slots, which are the tasks of the job or the entries of the "
        "host file, and otherwise the cores.",
        "Ask for as many tasks as processes (--ntasks), or start fewer. To share cores on purpose, add --map-by "
        ":OVERSUBSCRIBE.",
        f"{OPEN_MPI}scheduling.html",
    ),
    "no ssh between nodes": Advice(
        "mpirun could not start its helper on a different node, most often because ssh asks for a password or a key.",
        "Try `ssh NODE hostname` from the first node. Under Slurm, use srun, or an MPI that was built with Slurm.",
        f"{OPEN_MPI}ssh.html",
    ),
    "no such request": Advice(
        "Slurm refused the job: it asks for something that the partition does not have, or that you may not use.",
        "Compare --partition, --account, --qos and the numbers of nodes and GPUs with `sinfo` and `sacctmgr show "
        "associations user=$USER`.",
        SBATCH,
    ),
    "no shared files": Advice(
        "A file or folder of one node is not there on another one: both have a folder of that name, each its own.",
        "Keep code, data and checkpoints on a file system that all nodes mount, such as the home or project folder.",
        READING,
    ),
    "file already there": Advice(
        "A rank wanted to make a file or folder that exists. If all ranks make it, only the first one can.",
        "Make it on rank 0 alone, followed by a barrier, or use os.makedirs(…, exist_ok=True).",
        WHO_AM_I,
    ),
    "broken file": Advice(
        "A checkpoint or an archive ends too early or is damaged, for example because a job was stopped while writing "
        "it, or because several ranks wrote it at once.",
        "Use the checkpoint before it, or fetch the file again. Write on one rank only, to a new name, and rename it "
        "when it is complete.",
        RESUMES,
    ),
    "unfit checkpoint": Advice(
        "The weights that were loaded don't fit the model: other layers, or other sizes, such as the number of "
        "classes.",
        "Build the model with the settings that it was trained with. The lines below the exception name the layers.",
        "https://docs.pytorch.org/tutorials/beginner/saving_loading_models.html",
    ),
    "conda not active": Advice(
        "`conda activate` did not work in the job script, so the job went on in a different environment.",
        "Write `source $(conda info --base)/etc/profile.d/conda.sh` before `conda activate NAME` in the job script.",
        SBATCH,
    ),
    "too many open files": Advice(
        "The process has more files open than it may. The workers of a DataLoader hand over each tensor as an open "
        "file.",
        "Raise the limit in the job script (`ulimit -n 65536`), use fewer workers, or call "
        "torch.multiprocessing.set_sharing_strategy('file_system') at the start.",
        "https://docs.pytorch.org/docs/stable/multiprocessing.html",
    ),
    "file system failed": Advice(
        "The file system did not answer properly. The program is hardly at fault.",
        "Try `ls` in that folder from a different node, and tell the centre. Go on from the last checkpoint when it "
        "works again.",
        RESUMES,
    ),
    "NCCL interface": Advice(
        "NCCL or gloo found no network interface to meet the other ranks over: NCCL_SOCKET_IFNAME (or "
        "GLOO_SOCKET_IFNAME) names one that this node does not have.",
        "Remove the variable, or give it a name from `ip -brief address` that every node has. NCCL_DEBUG=INFO shows "
        "what was chosen.",
        NCCL_VARIABLES,
    ),
    "time limit": Advice(
        "The job was not done when the time that it had asked for was up, so it was ended.",
        "Ask for more --time, or write checkpoints and requeue. If the last step is long past, find out what it was "
        "waiting for.",
        TIME_IS_UP,
    ),
    "cancelled": Advice(
        "Somebody ended the job with scancel: you, a script of yours, or an administrator. Nothing in the log shows a "
        "failure before that.",
        "`sacct -j JOB --format=JobID,State,ExitCode` shows by whom (CANCELLED by UID). If it wasn't you, ask the "
        "centre.",
        "https://slurm.schedmd.com/scancel.html",
    ),
    "preempted": Advice(
        "Slurm took the nodes away for a job of higher priority. The program is not at fault.",
        "Write checkpoints and let Slurm start the job again (--requeue), or choose a partition or QOS that is not "
        "preempted.",
        "https://slurm.schedmd.com/preempt.html",
    ),
    "node failure": Advice(
        "A node of the job failed, or Slurm lost contact with it. The program is hardly at fault.",
        "Start again from the last checkpoint, without that node (--exclude=NODE), and tell the centre if it happens "
        "again.",
        RESUMES,
    ),
    "no GPU": Advice(
        "The program wants a GPU and sees none: the job has not asked for one, or the node has none, or "
        "CUDA_VISIBLE_DEVICES hides them.",
        "Run `nvidia-smi` and `echo $CUDA_VISIBLE_DEVICES` inside the job. Ask for GPUs (--gpus-per-node), or use the "
        'backend "gloo" on processors.',
        OWN_GPU,
    ),
    "torch without CUDA": Advice(
        "This torch was built for processors only.",
        "Install a build with CUDA in the environment that the job uses; `python -c 'import torch; "
        "print(torch.__version__, torch.version.cuda)'` shows which one you have.",
        INSTALL_TORCH,
    ),
    "wrong GPU binding": Advice(
        "Two ranks of a node took the same GPU, or a rank took one that it does not have.",
        "Let every rank take the GPU of its local rank (`torch.cuda.set_device(int(os.environ['LOCAL_RANK']))`), and "
        "start as many ranks on a node as the job has GPUs there.",
        OWN_GPU,
    ),
    "old driver": Advice(
        "The node's NVIDIA driver is older than the CUDA that this torch was built for, so torch sees no GPU.",
        "Install a torch for an older CUDA (its name ends in +cu126 or the like; `nvidia-smi` shows the newest that "
        "the driver knows), or ask for a node with a newer driver.",
        INSTALL_TORCH,
    ),
    "unfit kernels": Advice(
        "This torch, or an extension, holds no kernels for this generation of GPU.",
        "Install a build for it: `python -c 'import torch; print(torch.cuda.get_arch_list())'` lists what it holds.",
        INSTALL_TORCH,
    ),
    "broken GPU": Advice(
        "The GPU itself, its memory or its connection in the machine failed; the program is not at fault.",
        "Tell the centre the node and the number behind Xid, leave the node out (`--exclude=NODE`), and go on from the "
        "last checkpoint.",
        XID,
    ),
    "illegal memory access": Advice(
        "A kernel read or wrote outside of its tensors, for example with an index or a label that is too large.",
        "Run it once with CUDA_LAUNCH_BLOCKING=1, which names the call, or on the processor, which names the index.",
        CUDA,
    ),
    "GPU hang": Advice(
        "A GPU stopped answering, so its driver reset it and ended the processes that used it. The GPU, its driver or "
        "a kernel that never ends can be at fault.",
        "Ask the centre what the kernel's log (`dmesg`) says of this GPU, and go on from the last checkpoint on a "
        "different node. If it happens there too, at the same step, a kernel of the program is the reason.",
        RESUMES,
    ),
    "C++ exception": Advice(
        "A part of the program in C++ threw this exception, and nothing caught it, so the process aborted itself.",
        "The text of the exception is the reason. If it names a file or an input, begin there; otherwise search for it "
        "in the documentation of the program or the library that threw it.",
        READING,
    ),
    "error of the program": Advice(
        "The program found an error, wrote it down in its own words, and stopped itself.",
        "Begin with what this line names, which is often an input file or a setting. The lines around it, and the "
        "program's own output files, may say more.",
        READING,
    ),
    "missing rank": Advice(
        "A rank never came to a collective in which the others waited for it.",
        "Find out what it did instead: whether it had ended, took a different branch, or had fewer batches. All ranks "
        "need the same number of steps.",
        HANGS,
    ),
    "waited in vain": Advice(
        "A collective timed out on a different rank, and this rank was asked to write down its state.",
        "Read what the rank wrote whose collective timed out first.",
        HANGS,
    ),
    "CUDA after a fork": Advice(
        "A process that had already used the GPU forked, and the child cannot use it again.",
        'Start processes with the method "spawn" (also for DataLoader: multiprocessing_context), and use no GPU before '
        "that.",
        PROCESSES,
    ),
    "no main guard": Advice(
        "The program starts processes when it is imported, and each new process imports it again.",
        "Put what the program does under `if __name__ == '__main__':`.",
        PROCESSES,
    ),
    "InfiniBand": Advice(
        "Two nodes could not talk to each other over InfiniBand: a card, a cable or a setting is at fault, or the rank "
        "at the other end is dead.",
        "First look whether that rank failed earlier. If not, run `ibstat` on both nodes, look at NCCL_IB_HCA and "
        "NCCL_SOCKET_IFNAME if you set them, and tell the centre. NCCL_IB_DISABLE=1 shows whether the rest works, "
        "slowly.",
        NCCL_LOG,
    ),
    "NCCL's own error": Advice(
        "NCCL stopped at an error of CUDA, of the system, or of how it was called, which only its own lines name.",
        "Start again with NCCL_DEBUG=WARN, and read the first line with NCCL WARN of the rank that failed first.",
        NCCL_TROUBLE,
    ),
    "MPI's own error": Advice(
        "A rank ended all others through MPI, after an error that this line does not name.",
        "Read what that rank printed before this line, here or in its own files. A program in Python prints its "
        "exception if it is started with `python -m mpi4py`.",
        READING,
    ),
    "error inside MPI": Advice(
        "A call of MPI failed inside the library, and the last line of its error stack tells why.",
        "If that line names an argument of the call (a rank, a tag, a buffer), look at this call in the program. "
        "Otherwise the library or its network is at fault: tell the centre, and try a different version of MPI.",
        READING,
    ),
    "GPU tensors over MPI": Advice(
        "A process crashed inside MPI. That often happens when MPI is handed memory of a GPU and was not built for "
        "CUDA.",
        "If the program sends tensors of a GPU, try `tensor.cpu()` before sending. If that works, load an MPI that was "
        "built with CUDA, or use NCCL. Otherwise look at the calls of MPI that the crash shows.",
        f"{OPEN_MPI}",
    ),
    "segmentation fault": Advice(
        "A process crashed in compiled code, outside of Python.",
        "Start it with `python -X faulthandler`, which prints the line of Python, and look for packages that were "
        "built for a different version.",
        "https://docs.python.org/3/library/faulthandler.html",
    ),
    "bus error": Advice(
        "A process touched memory that does not exist, most often because /dev/shm is full or a mapped file was cut "
        "off.",
        "Check `df -h /dev/shm`, and start containers with --shm-size=8g or --ipc=host.",
        DATA,
    ),
    "killed": Advice(
        "A process was killed by signal 9 (exit code −9 or 137), and could not say anything about it. Most often the "
        "kernel or Slurm did that, because the memory was used up.",
        "Under Slurm, `sacct -j JOB --format=JobID,State,MaxRSS,ReqMem` shows OUT_OF_MEMORY, and `dmesg` on the "
        "node shows “Out of memory”. Ask for more memory, or use fewer workers and smaller batches.",
        READING,
    ),
    "aborted": Advice(
        "A process aborted itself (signal 6), as a C++ library does after an error that it cannot go on from.",
        "Read what it printed above this line; the reason is usually there.",
        READING,
    ),
    "interrupted": Advice(
        "The program was interrupted, as by Ctrl+C or a signal from the launcher.",
        "If it wasn't you, look for what ended the job.",
        READING,
    ),
    "terminated": Advice(
        "The launcher or Slurm ended the processes (signal 15). That follows from something that this log does not "
        "show.",
        "Read the logs of the other nodes and ranks, and `sacct -j JOB --format=JobID,State,ExitCode`.",
        READING,
    ),
    "exit code": Advice(
        "A process ended with an error, and no line that the course knows says why.",
        "Read what it printed before, and if that is not in this log, its own output: `srun --output=%t.out`, or "
        "torchrun with `--log-dir DIR --redirects 3`, writes a file for each. Then give the whole folder to `course "
        "doctor --log`.",
        READING,
    ),
    "collective timeout": Advice(
        "A collective was not done in time, because a rank never came to it, was in a different one, or had died.",
        "Compare `last enqueued work` of all ranks: the one with the lowest number stayed behind. With "
        "TORCH_FR_BUFFER_SIZE=2000 and TORCH_NCCL_DUMP_ON_TIMEOUT=1, torchfrtrace names the call.",
        HANGS,
    ),
    "peer left": Advice(
        "A rank lost its connection to a different one, because that one had ended. Why it ended is not in this log.",
        "Find the rank that ended first, and read its output. Look at ranks that report nothing, and at `sacct -j JOB "
        "--format=JobID,State,ExitCode`.",
        READING,
    ),
    "NCCL network": Advice(
        "NCCL could not talk to a different rank: the network between the nodes failed or lets nothing through, or the "
        "process at the other end was no longer there.",
        "First look whether a different rank ended earlier. If not, name the network that connects the nodes in "
        "NCCL_SOCKET_IFNAME, and check that no firewall or security group blocks any port between them.",
        NCCL_TROUBLE,
    ),
    "unreachable node": Advice(
        "A node cannot reach the address where rank 0 waits: a wrong name, a different network, or a firewall, or rank "
        "0 isn't there.",
        "From the other node, try `getent hosts NAME` and `ping NAME`. Give --master-addr the name that the cluster's "
        "own network knows, and check that rank 0 was started.",
        ON_SEVERAL_NODES,
    ),
    "localhost": Advice(
        "The ranks meet at `localhost`, and nobody answers there. On several nodes, each node then looks for rank 0 on "
        "itself. On one node, something is in the way of its own address.",
        "On several nodes, give --rdzv-endpoint (or --master-addr) the name of the first node. On one node, look for a "
        "proxy (`env | grep -i proxy`), a firewall, or a wrong entry for localhost in /etc/hosts, or give 127.0.0.1 "
        "and a different port.",
        ON_SEVERAL_NODES,
    ),
    "no internet": Advice(
        "The program wanted to reach a server on the internet, and the node has no way there, as is usual for compute "
        "nodes.",
        "Download data and models once where you log in, to a folder that all nodes see, and set HF_HUB_OFFLINE=1 (or "
        "download=False for torchvision, WANDB_MODE=offline for wandb).",
        HUB_VARIABLES,
    ),
    "tracker not reached": Advice(
        "The program could not reach the server of its experiment tracker in time. The node may have no way to the "
        "internet, or a slow one.",
        "Set WANDB_MODE=offline and send the run later with `wandb sync`, or give a longer init_timeout.",
        "https://docs.wandb.ai/",
    ),
    "no access to the model": Advice(
        "The server refused the download: nobody is logged in, the token is wrong, or the name does not exist.",
        "Accept the terms on the model's page, then log in on a node with internet (`hf auth login`), or set HF_TOKEN "
        "in the job (WANDB_API_KEY for wandb).",
        "https://huggingface.co/docs/hub/security-tokens",
    ),
}
"""The name of a failure → what to say of it."""

EXCEPTION = Advice(
    "The program raised this exception.",
    "Look at this line of the program.",
    "https://docs.python.org/3/tutorial/errors.html",
)
"""For an exception that no rule knows."""
UNKNOWN = Advice(
    "None of the failures that the course knows. These lines say most:",
    "Read from there on. The logs of other ranks and nodes may say more.",
    READING,
)
"""For a log that reports nothing known."""


def advice_for(failure: str) -> Advice:
    """What to say of a failure."""
    return ADVICE.get(failure, EXCEPTION)
