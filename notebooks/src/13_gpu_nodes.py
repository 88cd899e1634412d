# The lesson on launchers and nodes with GPUs, part 1. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # From four processes to forty GPUs?
#
# Your training program works with four processes on your own computer, and now you have been given time on a cluster:
# ten nodes with four GPUs each. You could log in to each of the ten, start four processes by hand, and give every one
# of the forty its own rank. But you would have to do it again whenever the run breaks off, and it will. When Meta
# trained Llama 3 on 16,384 GPUs, unexpected failures interrupted the run 419 times in 54 days (Grattafiori and others,
# 2024, section 3.3.4). At that rate, a run on forty GPUs is interrupted every seven or eight weeks. Many clusters also
# end every job after a day or two, whether it has finished or not.
#
# In this part you will see the few lines that let processes on GPUs find one another. You will start the program of
# lesson 7 with torchrun and as a job on a cluster, and make a training run survive both a dead process and its own time
# limit. [Part 2](13_gpu_nodes_part_2.ipynb) asks how well such a run uses one GPU and the network.
#
# *50 minutes · builds on [lesson 7](07_overlap.ipynb) · 4 ranks*

# %%
import os
import shutil
import signal
import socket
import tempfile
from dataclasses import replace
from pathlib import Path

import torch
import torch.distributed as dist

import course_utils as course
from course_utils.lessons.gpu_nodes import training_folder

scratch = tempfile.TemporaryDirectory(dir=training_folder())
folder = Path(scratch.name)

# %% [markdown]
# ## A launcher tells each process who it is
#
# A program that starts the processes of a parallel program is called a **launcher**. Every process runs the *same*
# program, and usually there is one process for each GPU. So a process can't know from its program which part of the
# work is its own, and the launcher has to tell it:
#
# - its **rank**, and the **world size**, which is the number of processes;
# - its **local rank**, which is its number *within its node* and usually picks its GPU;
# - the **master**, which is the address of the node where rank 0 waits for the others, together with a *port*. A port
#   is a number that tells a computer which of its programs a connection is for.
#
# Ranks are usually counted node by node, and everything is counted from 0. Take the third node of our cluster. The two
# nodes before it have 2 × 4 = 8 processes, with ranks 0 to 7, so the process with local rank 1 on the third node has
# rank 8 + 1 = 9.
#
# **Predict.** A process on the eighth node, `gpu08`, has local rank 2. What is its rank, and what is the world size?

# %%
course.predict("forty", rank=..., world_size=...)

# %% tags=["nbval-check-output"]
from course_utils.lessons.gpu_nodes import example_environment, find_launch, pictures

process = {"node": 7, "local_rank": 2, "nodes": 10, "gpus": 4}  # nodes count from 0
torchrun = example_environment("torchrun", **process)
srun = example_environment("srun", **process)
found = find_launch(srun)
print(found)

# %% tags=["figure:13_forty"]
course.answer("forty", rank=found.rank, world_size=found.world_size)
nodes = []
for node in range(1, 11):
    nodes += 4 * [f"gpu{node:02}"]
pictures.seats(nodes, "Forty GPUs", marked=[found.rank])

# %% [markdown]
# A launcher passes this information on in **environment variables**, which are named strings that a process inherits
# from whatever started it. We use two launchers. **torchrun** comes with PyTorch and starts the processes of *one*
# node, so on ten nodes you would have to start it ten times. `srun` belongs to **Slurm**, a scheduler that divides the
# nodes of a cluster among its users, and it starts the processes on *all* nodes of a job. The two use different
# variables, and the course's function `find_launch` reads either kind:

# %% tags=["figure:13_variables"]
both = {"torchrun": torchrun, "srun": srun}
title = "One of the forty processes, as torchrun and srun describe it"
pictures.launchers(both, title)

# %% [markdown]
# `srun` tells a process its rank directly, but not where to meet. It gives only a list of the nodes and the number of
# the job, so all ranks have to derive the same meeting point from these two. Our rule takes the first node, and 20,000
# plus the last four digits of the job's number as the port, which makes 20,000 + 4107 = 24107 in the picture.
# [Further](13_gpu_nodes_further.ipynb) explains this rule.
#
# ## The processes meet, and each takes its own GPU
#
# Lesson 6 used gloo, which adds up gradients on CPUs. On NVIDIA's GPUs you use **NCCL**, which sends them directly from
# GPU to GPU if it can. Some tensors stay in CPU memory, though, so a process group can have two backends.
# `backend="cpu:gloo,cuda:nccl"` means that gloo carries tensors in CPU memory, and NCCL those on GPUs.
#
# The next cell writes a complete program into the file `meet.py`. It needs nothing from this course, and contains the
# lines that let the processes meet, choose their GPUs and average a gradient.

# %%
# %%writefile {folder}/meet.py
import gc
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def average_gradients(rank, device, device_ids):
    model = nn.Linear(1, 1, bias=False).to(device)
    model = DistributedDataParallel(model, device_ids=device_ids)
    x = torch.tensor([[rank + 1.0]], device=device)
    model(x).sum().backward()  # without DDP, the gradient would be x
    gradient = model.module.weight.grad.item()
    print(f"rank {rank}: x is {x.item()} on {x.device}, the gradient {gradient}")

    count = torch.ones(1)  # in CPU memory, so gloo adds it up
    dist.all_reduce(count)
    print(f"rank {rank}: there are {count.item():.0f} of us")


local_rank = int(os.environ["LOCAL_RANK"])
on_this_node = int(os.environ["LOCAL_WORLD_SIZE"])  # number of processes
if torch.cuda.device_count() >= on_this_node:  # is there a GPU for each?
    torch.cuda.set_device(local_rank)
    dist.init_process_group(backend="cpu:gloo,cuda:nccl")
    average_gradients(dist.get_rank(), torch.device("cuda"), [local_rank])
else:
    dist.init_process_group(backend="gloo")
    average_gradients(dist.get_rank(), torch.device("cpu"), None)
gc.collect()  # frees the DDP model
dist.destroy_process_group()

# %% [markdown]
# NCCL needs a GPU for each of its ranks. So if there are fewer GPUs than processes, as on most laptops, the program
# ignores the GPUs and computes on the CPU. Now torchrun starts it with two processes, just as you would type it in a
# terminal. `--standalone` means that there is no other node, so torchrun can choose the port by itself. It listens on
# this port without a password while it runs, so don't run this page on a computer that you share with people you don't
# trust.

# %%
from course_utils.lessons.overlap import run_torchrun

log = run_torchrun("torchrun --standalone --nproc-per-node=2 meet.py", folder)

# %% [markdown]
# The gradient of rank 0 alone would be 1, and that of rank 1 would be 2. Both end up with 1.5, because DDP has averaged
# them. If the lines say `cpu`, gloo carried the gradients, and if they say `cuda:0` and `cuda:1`, NCCL did.
#
# One line deserves a question of its own. In PyTorch, the device `"cuda"` means the *current* GPU of a process, which
# is GPU 0 until the process calls `set_device`.
#
# **Predict.** Someone deletes the line with `set_device` and starts the program with two processes on a node with two
# GPUs. What happens?

# %%
choices = {
    "a": "it works, and each rank still has its own GPU",
    "b": "it works, but both ranks share GPU 0",
    "c": "it stops with an error from NCCL",
}
course.predict("no_set_device", answer=..., choices=choices)  # "a", "b" or "c"

# %%
from course_utils.lessons.gpu_nodes import recording

course.answer("no_set_device", answer="c")
record = recording("wrong GPU binding")
print(record.origin)
for line in record.log.splitlines():
    if "NCCL WARN" in line:
        print(line)

# %% [markdown]
# These lines come from a run of such a program. The number at their end is the address of the GPU on the bus that
# connects it to the CPU, and both ranks report the same one.
#
# What about the other lines? The table shows what happens without each of them if there are enough GPUs. On a computer
# without GPUs you can still try the rows of `init_process_group` and `DistributedDataParallel`.
#
# | Line | What it does | Without it |
# |---|---|---|
# | `set_device` | makes GPU number `local_rank` the current one | all use GPU 0, and NCCL stops |
# | `init_process_group` | reads the variables, waits for all ranks | `dist.get_rank` stops with an error |
# | `cuda:nccl` | NCCL carries what is on GPUs | DDP stops with an error |
# | `cpu:gloo` | gloo carries what is in CPU memory | the `all_reduce` of `count` stops with an error |
# | `DistributedDataParallel` | starts all ranks with the weights of rank 0, averages gradients | no error |
# | `device_ids` | lets DDP move inputs to this GPU | nothing changes here, since `x` is there already |
# | `gc.collect` | frees the DDP model before its group is gone | the program sometimes crashes at its end |
# | `destroy_process_group` | closes the connections cleanly | NCCL's part of PyTorch warns that resources may leak |
#
# The errors are easy to search for. `get_rank` says `Default process group has not been initialized`, and a missing
# backend is reported as `No backend type associated with device type cuda` (or `cpu`). The dangerous row is the one
# without an error. Try it: delete the line with `DistributedDataParallel`, and the `.module` further down, and run both
# cells again. The gradients are then 1 and 2, because each rank has a model of its own, and nothing tells you so.
#
# ## The program of lesson 7 runs on one node and on two
#
# `train.py`, the program at the end of lesson 7, contains the same lines. On a machine with GPUs, every tensor that it
# adds up is on a GPU, so it asks for `nccl` alone. We let it train on small images of handwritten digits, first with
# two processes on this computer:

# %%
from course_utils.lessons.overlap import TRAIN_PROGRAM, digits_as_pictures

shutil.copy(TRAIN_PROGRAM, folder / "train.py")
digits_as_pictures(folder)
options = "--data . --width 0.125 --epochs 3 --double"

command = f"torchrun --standalone --nproc-per-node=2 train.py {options}"
log = run_torchrun(f"{command} --save torchrun.pt", folder)

# %% [markdown]
# On a cluster you usually can't type commands on the nodes, and you don't want to be there at three in the morning when
# they become free. Instead you submit a **batch script**, a file with the commands to run and with comments that begin
# with `#SBATCH` and say what the job needs. Slurm runs it once there are enough free nodes.
#
# Our program expects torchrun's names for the variables, and `srun` uses different ones. So `srun` starts a short shell
# script instead, which translates the names and then uses `exec` to replace itself with our program:

# %%
from course_utils.lessons.gpu_nodes import slurm_script

translate = """
export RANK=$SLURM_PROCID
export WORLD_SIZE=$SLURM_NTASKS
export LOCAL_RANK=$SLURM_LOCALID
export LOCAL_WORLD_SIZE=$SLURM_NTASKS_PER_NODE
exec "$@"  # the rest of the command line
"""
(folder / "translate.sh").write_text(translate)

command = f"bash translate.sh python train.py {options} --save srun.pt"
script = slurm_script(command, nodes=2, minutes=10)
print(script)

# %% [markdown]
# The script asks for two nodes with one process on each. Slurm calls a process that `srun` starts a *task*. These
# comments matter most:
#
# | Option | What it asks for |
# |---|---|
# | `--nodes`, `--ntasks-per-node` | two nodes, and one task on each |
# | `--cpus-per-task` | one core for each task |
# | `--time` | ten minutes, after which Slurm ends the job |
# | `--signal`, `--requeue` | a warning 60 seconds before that, and permission to be queued again (last section) |
#
# The other three name the job and its output file, and make a job that is queued again append to that file instead of
# overwriting it.
#
# The first `export` asks `scontrol` for the first node of the job, which becomes the master. The second calculates the
# port from the job's number, and the third lets each process use as many threads (lesson 3) as it has cores. Then
# `srun` starts the tasks. It passes these variables on (`--export=ALL`) and gives each task its cores. Once one task
# ends, even with an error, the others get 30 seconds to finish (`--wait`) and aren't killed at once
# (`--kill-on-bad-exit=0`). In this time they can still report what went wrong on their side. The lines after it look at
# the exit code of `srun`, and we come back to them in the last section. On nodes with four GPUs each, you would call
# `slurm_script(…, gpus_per_node=4)`, which asks for the GPUs and for a task for each of them.
#
# `hand_in` submits the script with `sbatch`, waits, and prints what the job wrote. If this computer has no Slurm, you
# will see a recording of the same job instead. It was made with a real Slurm whose two nodes were emulated on one
# computer.
#
# **Predict.** The model, its first weights, the images and the number of processes are the same as before. After the
# last epoch, the loss printed by the job on two nodes is …

# %%
choices = {
    "a": "the same as with torchrun, to three decimals",
    "b": "close to it, because other processes draw other random numbers",
    "c": "larger, because the nodes are connected by a slower network",
}
course.predict("two_nodes", answer=..., choices=choices)  # "a", "b" or "c"

# %%
from course_utils.lessons.gpu_nodes import hand_in, printed_losses, recorded_output

losses = {"torchrun, one node": printed_losses(log)}
log = hand_in(script, folder)
name = "srun, two nodes"
if not log:
    recorded = recorded_output("batch_job")
    print(recorded)
    log = recorded.output
    name += " (recorded)"
losses[name] = printed_losses(log)

# %% tags=["figure:13_ways"]
from course_utils.lessons.gpu_nodes import same_loss, ways_text

course.measured("two_nodes", answer="a" if same_loss(losses) else "b")
course.draw.loss_curves(losses, ways_text(losses), x="epoch", y="printed training loss")

# %% [markdown]
# Training takes only a few numbers from its launcher. The sampler divides the images by rank and world size, and the
# seed fixes the first weights and the order of the images. None of these depends on the launcher, and a slower network
# would change the time of a step but not its result. Only rounding may differ, because other processors, GPUs and
# algorithms may add in a different order. So if two curves differ by more than that, something else has changed, for
# example a version of a library.
#
# ## A notebook can use a cluster, too
#
# You can skip this short section, because the rest of the page doesn't need it. `course.start` can also submit a job
# for you. The ranks of this job belong to your notebook, just like those on your own computer. If your cluster is busy,
# interrupt the cell instead of waiting for nodes.


# %%
from course_utils.lessons.gpu_nodes import has_slurm


def where_am_i(comm):
    return socket.gethostname(), comm.allreduce(comm.rank)


if has_slurm():
    ranks = course.start(4, where="slurm", nodes=2, minutes=5)
    run = ranks.run(where_am_i)
    for rank, (node, total) in enumerate(run.results):
        print(f"rank {rank} runs on {node}, and the sum of all ranks is {total}")
    ranks.stop()
else:
    print(recorded_output("ranks_in_a_job"))

# %% [markdown]
# Two of the four ranks are on each node. [On a cluster](../docs/clusters.md) says how you get ranks with GPUs, and how
# you work through this page in a web portal such as [Open OnDemand](../ondemand/README.md).
#
# ## A process dies, and training resumes
#
# In data-parallel training no rank can take a step without the others. So when a process dies, or a node with all its
# processes, the whole run stops, and everything since the last checkpoint is lost. A checkpoint is a file from which
# training can resume. One of the course's training programs, `train_ddp`, can do this. It trains a small network on the
# handwritten digits, with 60 steps in 12 epochs, and writes a checkpoint every 20 steps. At the end of each epoch it
# prints the loss on all training images. You will write its main loop in the exercises. First, it trains undisturbed:

# %%
from course_utils.lessons.gpu_nodes import losses_of, progress_lines

program = "-m course_utils.lessons.gpu_nodes.train_ddp --epochs 12 --batch-size 256"
command = f"torchrun --standalone --nproc-per-node=2 {program} --folder undisturbed"
log = run_torchrun(command, folder, shown=progress_lines)
undisturbed = losses_of(log)

# %% [markdown]
# What must a checkpoint contain? Everything that the next step depends on:

# %% tags=["nbval-check-output"]
from course_utils.lessons.gpu_nodes import load_checkpoint

content = load_checkpoint(folder / "undisturbed" / "checkpoint.pt")
progress = content["place"]
print("weights:  ", *content["model"])
print("optimizer:", len(content["optimizer"]["state"]), "velocities")
print("progress: ", progress["epoch"], "epochs and", progress["steps"], "steps")
print("random:    states of", len(content["random"]), "ranks")

# %% [markdown]
# Without the velocities of SGD with momentum (lesson 1), the first steps after a restart would go in a different
# direction. The progress tells each rank which batches of the epoch are already done, because `set_epoch`, which you
# saw in `train.py`, shuffles the images into the same order again. The random states matter as soon as a network makes
# random choices, as with the dropout of lesson 9.
#
# Only rank 0 writes the file, and it never writes over the old one. It writes a second file and renames it when it is
# complete, so if rank 0 dies while writing, the previous checkpoint is still whole.
#
# Now we kill a process. With `--max-restarts=1`, torchrun reacts to a dead process by ending the others and starting
# all of them again, at most once. If rank 1 were killed after step 27, the last checkpoint would be the one of step 20.
# So steps 21 to 27 would have to be repeated, which makes 7 steps.
#
# In the output you may see a long error about a closed connection. It is from rank 0, which can no longer reach rank 1.
#
# **Predict.** `--die-at 38` makes rank 1 kill itself after step 38. How many steps are done twice? And given what a
# checkpoint contains, by how many percent will the final loss differ from that of the undisturbed run?

# %%
course.predict("killed", steps_twice=..., loss_differs=...)  # steps, percent

# %% tags=["figure:13_killed"]
from course_utils.lessons.gpu_nodes import repeated_steps, tries_of

command = f"torchrun --standalone --nproc-per-node=2 --max-restarts=1 {program}"
command += " --folder killed --die-at 38"
log = run_torchrun(command, folder, shown=progress_lines)
resumed = losses_of(log)
assert same_loss({"undisturbed": undisturbed, "resumed": resumed})

tries = tries_of(log, steps_per_epoch=5)
difference = round(100 * abs(resumed[-1] / undisturbed[-1] - 1), 2)
course.measured("killed", steps_twice=repeated_steps(tries), loss_differs=difference)
pictures.tries(tries, undisturbed, "Killed and restarted")

# %% [markdown]
# After the restart the ranks repeat the steps since the last checkpoint. They begin with the same weights, velocities
# and batches, so on the same CPUs they calculate the same losses, and at the end nothing betrays the interruption. On
# GPUs the last digits may differ, because some of their kernels add in a different order each time.
#
# torchrun can only restart processes on a node that still works. If a node is lost, you need a new job that resumes
# from the same checkpoint, or a spare node ([Further](13_gpu_nodes_further.ipynb)). With `--nnodes=MIN:MAX`, torchrun
# can also continue on fewer nodes.
#
# How often should you save? With a short interval you spend much of the time writing, and with a long one you lose a
# lot of work at each failure. [Further](13_gpu_nodes_further.ipynb) works out the best interval, and describes
# checkpoints that are written while training goes on.
#
# ## The time is up, and all ranks stop after the same step
#
# A job that reaches its time limit is killed, but Slurm can warn it. With `--signal=TERM@60` in the batch script, each
# task receives **SIGTERM** 60 seconds before the end, or up to a minute earlier. SIGTERM is a signal of the operating
# system that asks a process to end. By default it ends the process at once, but a program can catch it, write a
# checkpoint and exit cleanly.
#
# With many ranks, this is harder than it sounds. Suppose that rank 1 has caught the signal and leaves, while rank 0
# hears of it a little later and has begun the next step. Rank 0 is then waiting for a gradient that rank 1 will never
# send. With gloo it stops because the connection was closed, and with NCCL it may wait until a timeout ends it. Either
# way it writes no checkpoint. The solution is for the ranks to agree when to stop. After each step they all-reduce one
# number with the maximum. Each rank contributes 1 if it has received the signal and 0 if it has not. In the next cell,
# only one rank hears the signal, after step 7:


# %%
def train_until_asked(rank_that_hears):
    heard = []

    def hear(number, frame):  # called when the signal arrives
        heard.append(number)

    before = signal.signal(signal.SIGTERM, hear)
    for step in range(1, 101):
        # ... forward, backward and update would be here ...
        if step == 7 and dist.get_rank() == rank_that_hears:
            os.kill(os.getpid(), signal.SIGTERM)
        asked = torch.tensor([float(len(heard))])
        dist.all_reduce(asked, op=dist.ReduceOp.MAX)
        if asked.item() > 0:
            break  # save a checkpoint, then leave
    signal.signal(signal.SIGTERM, before)
    return step, len(heard)


# %% [markdown]
# **Predict.** Four ranks run this function, and rank 2 gets the signal. After which step does rank 0 stop, and how many
# ranks have heard the signal?

# %%
course.predict("agreed", step_of_rank_0=..., ranks_that_heard=...)

# %%
ranks = course.start(4)
ranks.load_torch()
run = ranks.run(train_until_asked, 2, backend="gloo")
for rank, (step, heard) in enumerate(run.results):
    print(f"rank {rank} stops after step {step}, signals heard: {heard}")
heard = sum(heard for step, heard in run.results)
course.answer("agreed", step_of_rank_0=run.results[0][0], ranks_that_heard=heard)

# %% [markdown]
# `train_ddp` does the same, but on GPUs only after every tenth step, because a GPU has to wait for the answer. Then
# rank 0 writes a checkpoint. Run as a program, it exits with code 75, which by convention means "try again later". That
# is what the last lines of the batch script look for. The script that we submitted can't use them, since `train.py`
# neither catches the signal nor resumes. With the command `python -m course_utils.lessons.gpu_nodes.train_ddp --folder
# runs` instead, the same script puts the job back into the queue with `scontrol requeue`, and the next start resumes
# from the checkpoint. This program calls `find_launch`, so it needs no `translate.sh`.
#
# Let's stop this training program with a real signal. `send_sigterm` signals rank 1 alone, 0.3 seconds after it has
# begun to listen for signals. By then it may still be setting up or in one of its first steps, so the number of the
# step varies from run to run. `pause` makes every step a little slower, so that the run can't be over before the signal
# arrives:

# %%
from course_utils.lessons.gpu_nodes import Interrupted, Settings
from course_utils.lessons.gpu_nodes import send_sigterm, train_ddp


def train_with_signal(settings):
    if dist.get_rank() == 1:
        send_sigterm(after=0.3)  # seconds
    try:
        train_ddp(settings)
    except Interrupted as stopped:
        return stopped.steps


gpus = torch.cuda.device_count()
backend = "nccl" if gpus >= 4 else "gloo"  # a GPU for each of the four ranks?
settings = Settings(str(folder / "stopped"), epochs=12, batch_size=256, pause=0.05)
run = ranks.run(train_with_signal, settings, backend=backend)
print("the ranks stop after steps", run.results)
assert len(set(run.results)) == 1

again = ranks.run(train_ddp, replace(settings, pause=0.0), backend=backend)
trained = again.results[0]
print(f"resumed after step {trained.resumed_at}, loss at the end {trained.loss:.4f}")
print(f"never stopped: {undisturbed[-1]:.4f}")
assert trained.resumed_at == run.results[0] > 0
assert same_loss({"stopped": trained.losses, "never stopped": undisturbed})

# %%
ranks.stop()
scratch.cleanup()

# %% [markdown]
# ## What you take with you
#
# A launcher starts the same program everywhere and tells each process its rank, the world size, its local rank and
# where to meet. The process uses the local rank to choose its GPU, and the rest to join the process group, with NCCL
# for what is on GPUs and gloo for what is not. Nothing else in the training depends on the launcher, so torchrun and
# Slurm gave the same curve. A checkpoint holds everything that the next step depends on, so a run that was killed can
# end with the same loss as one that was not. And before they stop, the ranks agree on which step will be the last.
#
# The [exercises](../exercises/13_gpu_nodes.ipynb) let you write the resumable loop and the batch script.
# [Further](13_gpu_nodes_further.ipynb) has recorded logs of launches that failed, and shows how to find the rank that
# failed first. [Part 2](13_gpu_nodes_part_2.ipynb) looks at a single GPU and its network.
#
# **To read**
#
# - The [manual of torchrun](https://docs.pytorch.org/docs/stable/elastic/run.html) lists all variables that it sets,
#   and describes how it restarts processes.
# - Grattafiori and others (2024), [*The Llama 3 Herd of Models*](https://arxiv.org/abs/2407.21783), section 3.3.4,
#   reports what failed, and how often, in 54 days on 16,384 GPUs.
# - Slurm's manual of [sbatch](https://slurm.schedmd.com/sbatch.html) explains every `#SBATCH` option.
