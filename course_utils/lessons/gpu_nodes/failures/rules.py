"""What the lines of a log mean: rules from a line, and the words around it, to the failure that it reports.

The rules are drawn from what people ask about, and from launches that were made to fail
(tools/failing_launches/record.py).
"""

import functools
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from course_utils.lessons.gpu_nodes.failures.log_line import Line
from course_utils.lessons.gpu_nodes.failures.story import ReportKind


@dataclass(frozen=True)
class Meaning:
    """What it means if a line has these words.

    Attributes:
        failure: its name, a key of `ADVICE`.
        kind: whether it is a cause, a sign or a consequence.
        shows: a regular expression for the line. If it has a group `rank`, that is who failed, and whoever wrote the
            line only waited.
        near: a regular expression that the line or those around it must fit, too.
        unless: a regular expression that none of them may fit.
    """

    failure: str
    kind: ReportKind
    shows: str
    near: str = ""
    unless: str = ""
    pattern: re.Pattern[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "pattern", re.compile(self.shows))

    def rank_in(self, text: str) -> int | None:
        """The rank that a line names, if the rule looks for it."""
        found = self.pattern.search(text) if "rank" in self.pattern.groupindex else None
        return int(found["rank"]) if found else None


def cause(failure: str, shows: str, near: str = "", unless: str = "") -> Meaning:
    """A rank or the system says what went wrong with itself."""
    return Meaning(failure, ReportKind.CAUSE, shows, near, unless)


def sign(failure: str, shows: str, near: str = "", unless: str = "") -> Meaning:
    """Something failed, and the line doesn't say why."""
    return Meaning(failure, ReportKind.SIGN, shows, near, unless)


def consequence(failure: str, shows: str, near: str = "", unless: str = "") -> Meaning:
    """A rank complains about a different one."""
    return Meaning(failure, ReportKind.CONSEQUENCE, shows, near, unless)


RENDEZVOUS = (
    r"\bc10d\b|TCPStore|socket\.cpp|DistNetworkError|DistStoreError|init_process_group|[rR]endezvous|MASTER_ADDR"
    r"|torchrun|elastic|gloo|Gloo|NCCL|ProcessGroup|MPI"
)
"""Words of those who want to meet the other ranks."""
DOWNLOAD = (
    r"urllib|urlopen|HTTPS?ConnectionPool|HTTPS?Connection\b|huggingface|\bhf\.co|requests\.|httpx|http\.client"
    r"|https?://|aiohttp|git clone|pip install|\bwget\b|\bcurl\b|LocalEntryNotFound|botocore|ConnectTimeout|boto3|wandb"
)
"""Words of those who want something from the internet."""
_NO_ADDRESS = (
    r"No route to host|Network is unreachable|[Nn]ame or service not known|[Hh]ost\S* .*not known|in name resolution"
    r"|nodename nor servname|Could not resolve host|NameResolutionError|getaddrinfo failed"
)

MEANINGS = (
    # What the system or Slurm says.
    cause("node failure", r"DUE TO NODE FAILURE|NODE_FAIL\b|srun: error: Node failure on"),
    cause("node failure", r"Task launch for .* failed on node|task \d+ launch failed", unless=r"execve"),
    cause("preempted", r"DUE TO PREEMPTION|\bPREEMPTED\b|job was preempted"),
    cause("time limit", r"DUE TO TIME LIMIT|TERM_RUNLIMIT|job killed: walltime|time limit for job execution has been"),
    cause("cancelled", r"\bJOB \d+\S* ON \S+ CANCELLED AT \S+ \*\*\*|job killed: .*qdel|TERM_OWNER"),
    consequence("terminated", r"\bSTEP \S+ ON \S+ CANCELLED AT \S+ \*\*\*"),
    cause(
        "no such request",
        r"(sbatch|srun|salloc): error: (Batch job submission failed|Unable to allocate|Invalid (acc|par))",
    ),
    cause(
        "no such request",
        r"Invalid account or account/partition|invalid partition specified|node configuration is not available",
    ),
    cause("no such request", r"More processors requested than permitted|Invalid generic resource|violates accounting"),
    cause(
        "too few slots",
        r"not enough slots available|number of processes .* exceeds .*slots|All nodes which are allocated",
    ),
    cause(
        "MPI without PMI",
        r"direct launched using \"srun\"|not built with SLURM|PMI server not found"
        r"|PMI[12x]?_?[Ii]nit\w* (failed|returned)|set I_MPI_PMI_LIBRARY|No PMIx server was reachable"
        r"|PMIX? ?ERROR.*(UNREACH|NOT-SUPPORTED)",
    ),
    cause("MPI without PMI", r"OPAL ERROR: (Unreachable|Not initialized) in file pmix?\w*_client"),
    cause("no ssh between nodes", r"Permission denied \(publickey|Host key verification failed"),
    cause("no ssh between nodes", r"was unable to reliably start one or more daemons|unable to reliably start"),
    cause("disk full", r"Disk quota exceeded|EDQUOT|Errno 122\b|quota exceeded"),
    cause(
        "shared memory",
        r"insufficient shared memory|out of shared memory|/dev/shm.*No space|No space left on device.*/dev/shm"
        r"|(creating|attaching|extend|open|mmap|allocate)\w* (to )?shared memory"
        r"|unable to (mmap|resize|write|open) .*torch_",
    ),
    cause("shared memory", r"Bus error", near=r"[Dd]ata[Ll]oader|shared memory|/dev/shm|worker"),
    cause("disk full", r"No space left on device|ENOSPC|Errno 28\b", unless=r"/dev/shm"),
    cause("out of memory", r"ray\.exceptions\.OutOfMemoryError|java\.lang\.OutOfMemoryError|running low on memory"),
    cause("out of memory", r"[Cc]group out of memory|Out of memory: Killed|oom[-_]kill|: Out Of Memory|OOM Killed"),
    cause("out of GPU memory", r"(cudaErrorMemoryAllocation|parallel_for failed): out of memory|out_of_memory: CUDA"),
    cause("out of memory", r"DefaultCPUAllocator: |Cannot allocate memory|bad_alloc|\bMemoryError\b|allocator cpu\b"),
    cause("out of memory", r"[Ee]xceeded (job |step )?memory limit|TERM_MEMLIMIT|insufficient virtual memory"),
    cause(
        "out of GPU memory", r"(CUDA|HIP|NPU|XPU|MPS backend) out of memory|OutOfMemoryError|CUDA error: out of memory"
    ),
    cause("out of GPU memory", r"HIP error: out of memory|hipErrorOutOfMemory|allocator GPU_"),
    cause("out of GPU memory", r"Cuda failure .*out of memory|CUBLAS_STATUS_ALLOC_FAILED|OUT_OF_DEVICE_MEMORY"),
    cause("out of GPU memory", r"RESOURCE_EXHAUSTED: Out of memory|OUT_OF_MEMORY: |CUDA_ERROR_OUT_OF_MEMORY"),
    # Software.
    cause(
        "different software", r"No module named '(\w+\.)*numpy\._core|Can't get attribute .* on <module '\w+(\.\w+)*\._"
    ),
    cause(
        "different software",
        r"undefined symbol|version [`'](GLIBC|CXXABI|GLIBCXX)\S* not found|unsupported pickle protocol",
    ),
    cause(
        "different software",
        r"NCCL version mismatch|Mismatch(ed)? NCCL version|Incompatible NCCL|Version mismatch.*NCCL",
    ),
    cause("extension not built", r"No module named '\w+(\.\w+)*\._\w+|No module named '\w*(_ext|_cuda|_C|_cpp)\b"),
    cause(
        "extension not built",
        r"Error building extension|CUDA_HOME environment variable is not set|Unable to JIT load the",
    ),
    cause("extension not built", r"cannot import name '_C'|CUDA_HOME does not exist, unable to compile"),
    cause("missing module", r"ModuleNotFoundError: No module named|ImportError: No module named|No module named \w+$"),
    cause("missing library", r"error while loading shared libraries|cannot open shared object file"),
    cause("wrong processor", r"[Ee]xec format error|cannot execute binary file|Illegal instruction"),
    cause("command not found", r"execve\(\): .*No such file or directory|can't open file '.*No such file or directory"),
    cause(
        "command not found", r"was unable to find the specified executable|unable to launch the specified application"
    ),
    cause("command not found", r"[Ss]lurmd could not execve job"),
    cause("no shared files", r"couldn't chdir to .* No such file or directory"),
    sign("command not found", r": command not found", unless=r"(module|ml): command not found"),
    cause("wrong arguments", r"unrecognized arguments:", unless=r"--local[-_]rank"),
    cause("--local-rank", r"unrecognized arguments:.*--local[-_]rank"),
    cause("wrong arguments", r"error: (the following arguments are required|argument \S+: |ambiguous option)"),
    # Who is who, and which GPU.
    cause("rank not set", r"environment variable \w+ expected, but not set"),
    cause("rank not set", r"KeyError: '(LOCAL_RANK|RANK|WORLD_SIZE|MASTER_ADDR|MASTER_PORT)'"),
    cause("torch without CUDA", r"Torch not compiled with CUDA enabled|doesn't have NCCL built in|built without NCCL"),
    cause(
        "old driver",
        r"NVIDIA driver on your system is too old|driver version is insufficient|forward compatibility was att",
    ),
    cause("no GPU", r"No (CUDA|HIP) GPUs are available|no CUDA-capable device|only supported with GPUs, no GPUs found"),
    cause("no GPU", r"no GPUs found|Found no NVIDIA driver|No supported gpu backend found|CUDA_ERROR_NO_DEVICE"),
    cause("no GPU", r"torch\.cuda\.is_available\(\) is False|available devices are: None|no NVIDIA GPU detected"),
    cause("wrong GPU binding", r"Duplicate GPU detected|Multiple Ranks are using the same GPU|invalid device ordinal"),
    cause("wrong GPU binding", r"CUDA-capable devices?\S* .*busy or unavailable|device\(s\) is/are busy"),
    cause("wrong GPU binding", r'backend="nccl" cannot be had here'),
    cause("no GPU", r"no ROCm-capable device"),
    cause("unfit kernels", r"hipErrorNoBinaryForGpu|Unable to find code object for all current devices"),
    cause("unfit kernels", r"no kernel image is available|is not compatible with the current PyTorch installation"),
    cause("broken GPU", r"\bXid\b.*: (48|63|64|74|79|92|94|95|119|120),|fallen off the bus|GPU is lost"),
    cause(
        "broken GPU",
        r"uncorrectable (\w+ )*(ECC )?error|hipErrorECCNotCorrectable|Unable to determine the device handle",
    ),
    cause("illegal memory access", r"illegal memory access|device-side assert triggered|unspecified launch failure"),
    cause("illegal memory access", r"misaligned address|Assertion `.*` failed\.$", near=r"CUDA|\.cu:\d+"),
    cause("illegal memory access", r"Memory access fault by GPU|hipErrorIllegalAddress|MEMORY_APERTURE_VIOLATION"),
    cause("GPU hang", r"HW Exception by GPU|GPU [Hh]ang\b|GPU HANG: |amdgpu.*(ring \S+ timeout|GPU reset begin)"),
    cause("GPU hang", r"RESULT_ERROR_DEVICE_LOST|HSA_STATUS_ERROR_EXCEPTION|hardware exception"),
    cause("GPU hang", r"aicore (exception|execution is abnormal|timeout)|vector core execution is abnormal"),
    cause("CUDA after a fork", r"Cannot re-initialize CUDA in forked subprocess"),
    cause(
        "no main guard", r"before the\s+current process has finished its bootstrapping|start a new process before the"
    ),
    # How ranks meet and talk.
    cause("NCCL interface", r"no socket interface found|address .*with family \d+ is neither AF_INET"),
    cause("NCCL interface", r"Unable to find (address|interface) for: \S+"),
    cause("InfiniBand", r"NET/IB ?: .*Got (async event|completion)|\bibv_modify_qp\w* failed"),
    cause("mismatched collectives", r"Detected mismatch between collectives|op\.preamble\.length <= op\.nbytes"),
    cause(
        "mismatched collectives",
        r"MPI_ERR_TRUNCATE|Message truncated|has a different (number of elements|shape) .*rank",
    ),
    cause(
        "mismatched models",
        r"verif\w+ (params|model)\w* (across|is consistent)|parameters .* inconsistent across ranks",
    ),
    cause("mismatched models", r"DDP expects same model across all ranks"),
    cause("unused parameters", r"Expected to have finished reduction in the prior iteration"),
    cause(
        "unused parameters", r"that were not used in producing (the )?loss|Expected to mark a variable ready only once"
    ),
    cause("address in use", r"EADDRINUSE|[Aa]ddress already in use"),
    cause(
        "no internet",
        rf"{_NO_ADDRESS}|Connection refused|Max retries exceeded|[Tt]imed? ?out",
        near=DOWNLOAD,
        unless=r"c10d|TCPStore|Run initialization has timed out",
    ),
    cause("no internet", r"We couldn't connect to 'https|offline mode is enabled|LocalEntryNotFoundError|ProxyError"),
    cause(
        "no access to the model", r"GatedRepoError|gated repo|401 Client Error|403 Client Error|RepositoryNotFoundError"
    ),
    cause(
        "no access to the model", r"(wandb|WANDB).*(api_key not configured|No API key configured)|UsageError: api_key"
    ),
    cause("unreachable node", _NO_ADDRESS, near=RENDEZVOUS, unless=DOWNLOAD),
    consequence(
        "NCCL network",
        r"socketPollConnect: .*(exceeded|failed)|Socket recv failed|NET/OFI .*handshake failed",
        unless=r"retrying \(",
    ),
    consequence("localhost", r"(failed to connect|while trying to connect).*\((localhost|127\.0\.0\.1|::1), \d+\)"),
    consequence("unreachable node", r"socket has failed to connect to any|timed out .*while trying to connect"),
    consequence("unreachable node", r"connection to the C10d store has failed|RendezvousConnectionError"),
    consequence(
        "unreachable node", r"Connection refused|ECONNREFUSED", near=RENDEZVOUS, unless=rf"{DOWNLOAD}|retrying \("
    ),
    cause(
        "wrong rank count",
        r"rank < size\. \d+ vs \d+|duplicate (ranks|rank \d+)|rank \d+ (must be|should be) (less|in)",
    ),
    consequence("wrong rank count", r"\d+/\d+ clients joined|RendezvousTimeoutError|RendezvousClosedError"),
    cause("too many open files", r"Too many open files|received 0 items of ancdata"),
    cause("file system failed", r"\[Errno (5|107|116)\]|: (Input/output error|Stale file handle)$", unless=r"UCX|ibv_"),
    cause(
        "broken file",
        r"PytorchStreamReader failed|Ran out of input|invalid load key|unexpected EOF|BadZipFile|HeaderToo",
    ),
    cause("unfit checkpoint", r"Error\(s\) in loading state_dict|size mismatch for \w"),
    sign("conda not active", r"has not been properly configured to use 'conda|Run 'conda init' before 'conda activate"),
    cause("file already there", r"\bFileExistsError\b"),
    cause("tracker not reached", r"CommError: Run initialization has timed out"),
    sign("worker process died", r"\b(Actor|Node)DiedError|WorkerCrashedError|RayActorError|BrokenProcessPool"),
    sign("worker process died", r"[Ww]orker process has died|There are some potential root causes"),
    sign("data worker ended", r"DataLoader worker \(pid.*(killed by signal|exited unexpectedly)"),
    cause("error of the program", r"forrtl: severe \((?!174|193)\d+\)|Fortran runtime error:|^\s*ERROR STOP\b"),
    # What only follows, and what says little.
    sign("missing rank", r"(?:^|[>:] ?)(?P<rank>\d+): \[(all|broad|\S*Horovod[AB])", near=r"(Missing|Stalled) ranks:"),
    sign("missing rank", r"\[missing ranks: ?(?P<rank>\d+)"),
    consequence("collective timeout", r"dump signal due to a collective timeout from +rank +(?P<rank>\d+)"),
    consequence("collective timeout", r"dump signal due to a collective timeout from this local rank"),
    consequence("waited in vain", r"(Received a|recorder) (dump signal|global timeout|timeout signal)"),
    consequence(
        "collective timeout", r"Watchdog caught collective operation timeout|Timed out waiting \d+ ?ms for (recv|send)"
    ),
    consequence("collective timeout", r"failed to pass monitoredBarrier|monitoredBarrier|[Ww]ait timeout( after|$)"),
    consequence(
        "collective timeout", r"Some NCCL operations have failed or timed out|exceeded timeout", near=RENDEZVOUS
    ),
    consequence("collective timeout", r"EI0002: |wait execution of the Notify register times out"),
    consequence("peer left", r"remote process exited(?! or)|HorovodInternalError|communicator was aborted"),
    consequence("peer left", r"Horovod has been shut down|communication peer process has unexpectedly disconnected"),
    consequence(
        "peer left",
        r"[Cc]onnection (closed|reset)|Broken pipe|got 0 bytes|Socket Timeout|recvValue failed",
        unless=DOWNLOAD,
    ),
    consequence("NCCL network", r"ncclRemoteError|or there was a network error"),
    consequence("peer left", r"TCPStore server has shut down|Stop_waiting response is expected|MPI_ERR_PROC_FAILED"),
    sign(
        "GPU tensors over MPI",
        r"Segmentation fault|invalid permissions for mapped|Caught signal 11",
        near=r"UCX|ucp_|uct_|cuMem|psm2|libcuda",
    ),
    sign("segmentation fault", r"Segmentation fault|SIGSEGV|Caught signal 11|forrtl: severe \(174\)"),
    sign("bus error", r"Bus error|SIGBUS"),
    sign("NCCL's own error", r"unhandled (cuda|system) error|nccl(UnhandledCuda|System|Internal)Error"),
    sign("NCCL's own error", r"ncclInvalid(Usage|Argument)|NCCL error.*invalid (usage|argument)"),
    sign("NCCL's own error", r"(group|HCCL) watchdog thread terminated with exception|c10::Dist\w+"),
    sign(
        "MPI's own error",
        r"MPI_ERRORS_ARE_FATAL|Fatal error in \w*MPI_\w+|MPI_ABORT was invoked|called MPI_Abort\(",
    ),
    sign("aborted", r"Aborted +\(core dumped\)|SIGABRT|Signal: Aborted"),
    sign("aborted", r"terminate called (?!after throwing an instance of ')"),
    sign("killed", r"\d+ Killed\b|: task \d+: Killed|SIGKILL|^Killed$|exited on signal 9"),
    sign("interrupted", r"KeyboardInterrupt"),
    consequence("terminated", r"SignalException|got signal: 1?[125]\b|: Terminated$|forrtl: error \(78\)"),
)
"""Of the rules that a line fits, the first one counts."""

_ERROR = re.compile(
    r"\b\w*(Error|Exception|Interrupt)\b|\b(error|fatal|ERROR|FATAL|failed|FAILED)\b"
    r"|Segmentation fault|core dumped"
)
_NO_ERROR = re.compile(r"[Ww]arning|WARN|^\W*$|^\[?W\d{4} |errors\.html|error_file|Lmod has detected|DEBUG|INFO")
_DIGITS = str.maketrans("", "", "0123456789")
_WORDS = (
    "error", "fail", "except", "cancel", "kill", "preempt", "walltime", "term_", "limit", "exceed", "out of", "oom",
    "alloc", "low on memory", "quota", "edquot", "no space", "enospc", "shared", "/dev/shm", "slots", "launched",
    "not built", "pmi", "denied", "undefined", "not found", "no module", "no route", "no cuda", "no hip",
    "no supported", "no gpu", "no nvidia", "no kernel", "no socket", "not set", "argument", "expected", "mismatch",
    "inconsistent", "duplicate", "same gpu", "ordinal", "xid", "fallen", "illegal", "assert", "cannot", "unable",
    "bootstrapping", "new process", "with family", "net/ib", "op.preamble", "truncat", "ready only", "in use",
    "eaddr", "unreachable", "not known", "resol", "refused", "timed out", "timeout", "connect", "joined", "rank <",
    "ran out", "eof", "load key", "waiting", "barrier", "pipe", "got  bytes", "nccl error", "ncclinvalid", "can't",
    "shut down", "stop_waiting",
    "segmentation", "signal", "sigkill", "sigabrt", "sigsegv", "sigbus", "abort", "fatal", "terminat", "interrupt",
    "chdir", "too old", "insufficient", "compatible", "offline", "configured", "misaligned", "available",
    "permitted", "unable to find", "exited", "header", "gated", "uncorrectable", "compile", "same model", "execut",
    "already filled", "device", "fault", "ancdata", "too many", "input/output", "stale", "endpoint",
    "code object", "invalid", "violates", "errno", "out_of_memory", "unsupported", "execve", "nccl built in",
    "without nccl", "forward compat", "gpu is lost", "aperture", "gpu hang", "gpu reset", "different number",
    "different shape", "verif", "not used in", "nodename", "must be", "should be", "zipfile", "conda init",
    ": [all", ": [broad", "horovoda", "horovodb", "missing ranks", "forrtl", "ei: ", "c::dist", "died",
    "root cause", "brokenprocess", "workercrash", "rayactor", "remote", "network error", "ibv_", "socketpoll",
    "socket recv", "net/ofi",
)  # fmt: skip
"""A line fits no rule if it has none of these in it, without its digits, and most lines of a long log have none."""


def may_mean(text: str) -> bool:
    """Whether a line may fit a rule. This is fast, as most lines of a log differ from others only in their digits."""
    return _may_mean(text.translate(_DIGITS))


@functools.lru_cache(maxsize=1 << 16)
def _may_mean(text: str) -> bool:
    text = text.lower()
    return any(word in text for word in _WORDS)


def meaning_of(texts: Iterable[str], around: Iterable[str] = ()) -> Meaning | None:
    """The first rule that one of the texts fits, or None.

    Args:
        texts: a line, or the lines of an exception.
        around: the lines around it.
    """
    texts = list(texts)
    together = "\n".join([*texts, *around])
    for meaning in MEANINGS:
        if (
            any(meaning.pattern.search(text) for text in texts)
            and (not meaning.near or re.search(meaning.near, together))
            and not (meaning.unless and re.search(meaning.unless, together))
        ):
            return meaning
    return None


def is_error(line: Line) -> bool:
    """Whether a line speaks of an error, and not of a warning."""
    return _ERROR.search(line.text) is not None and not _NO_ERROR.search(line.text)
