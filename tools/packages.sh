# What tools/set-up, its fellows and tools/fetch-wheels share: which Python, which packages, and from where. They source it
# in the course's folder. The names that it sets are explained where they are set.

say() { printf '%s\n' "$*" >&2; }
stop() {
    say "$@"
    exit 1
}
pinned() { sed -n "s/^$1==//p" constraints.txt; }

# The Pythons for which all that is pinned has wheels stand in pyproject.toml: ">=3.11,<3.15".
oldest=$(sed -n 's/^requires-python = ">=3\.\([0-9]*\),.*/\1/p' pyproject.toml)
newest=$(($(sed -n 's/^requires-python = .*,<3\.\([0-9]*\)"/\1/p' pyproject.toml) - 1))

check_choices() {
    case ${SITE_MPI:-0} in 0 | 1) ;; *) stop "SITE_MPI=$SITE_MPI is neither 0 nor 1. 1 uses the MPI of the site, 0 installs MPICH." ;; esac
    case ${HASHES:-0} in 0 | 1) ;; *) stop "HASHES=$HASHES is neither 0 nor 1. 1 checks every file against requirements.lock, 0 checks none." ;; esac
    case ${TORCH:-auto} in auto | pypi | cpu | cu[0-9]*) ;; *) stop "TORCH=$TORCH is not a build of torch. Choose cpu, pypi, auto, or one for CUDA such as cu126." ;; esac
}

# Variables of pip, uv and Python that would send packages elsewhere, bring those of a different Python or choose other
# versions are set aside; those that say where packages come from are kept. $aside names the ones that were set.
set_aside() {
    aside=
    for name in $(env | sed -nE 's/^((PIP_|UV_|PYTHON)[A-Z0-9_]*)=.+/\1/p'); do
        case $name in
        PIP_INDEX_URL | PIP_EXTRA_INDEX_URL | PIP_NO_INDEX | PIP_FIND_LINKS | PIP_TRUSTED_HOST | PIP_CONFIG_FILE) continue ;;
        PIP_CERT | PIP_CLIENT_CERT | PIP_PROXY | PIP_*TIMEOUT | PIP_RETRIES | PIP_*CACHE_DIR | PIP_KEYRING* | PIP_USE_FEATURE) continue ;;
        UV_*INDEX* | UV_FIND_LINKS | UV_*CACHE* | UV_*TIMEOUT | UV_*RETRIES | UV_KEYRING* | UV_INSECURE_HOST | UV_*CONFIG*) continue ;;
        UV_*CERT* | UV_*TLS | UV_OFFLINE | UV_COMPILE_BYTECODE | UV_LINK_MODE | UV_CONCURRENT* | UV_PYTHON_* | UV_*_DIR | UV_LOCK_TIMEOUT) continue ;;
        PIP_DISABLE_PIP_VERSION_CHECK | PIP_NO_INPUT | PIP_NO_COLOR | PIP_ROOT_USER_ACTION | PIP_PROGRESS_BAR) continue ;;
        PIP_REQUIRE_VIRTUALENV | PIP_BREAK_SYSTEM_PACKAGES | PIP_LOG | PIP_NO_WARN* | UV_NO_PROGRESS | PYTHONWARNINGS) ;;
        PYTHONPATH) aside="$aside PYTHONPATH$(torch_in_path)" ;;
        PYTHONHOME | PYTHONUSERBASE | PYTHONPLATLIBDIR) aside="$aside $name" ;;
        PYTHON*) continue ;;
        *) aside="$aside $name" ;;
        esac
        unset "$name"
    done
}
torch_in_path() (
    IFS=:
    for folder in $PYTHONPATH; do
        if [ -d "$folder/torch" ]; then echo "_(with_its_own_torch)" && break; fi
    done
)

# The settings of pip.conf are treated alike. Then pip reads no file any more, and uv gets the same places as pip.
read_pip_settings() {
    of_pip_conf=
    for candidate in "$@"; do
        listed=$("$candidate" -m pip config list 2>/dev/null) || continue
        eval "$(printf '%s\n' "$listed" | "$python" tools/pip_settings.py)"
        export PIP_CONFIG_FILE=/dev/null
        break
    done
    case ${PIP_NO_INDEX:-} in '' | 0 | [Ff]alse | [Nn]o | [Oo]ff) unset PIP_NO_INDEX ;; esac
    case ${PIP_INDEX_URL:-} in https://pypi.org/simple | https://pypi.org/simple/) unset PIP_INDEX_URL ;; esac
    [ -n "${UV_DEFAULT_INDEX:-}" ] || UV_DEFAULT_INDEX=${UV_INDEX_URL:-}
    if [ -z "${UV_DEFAULT_INDEX:-}${UV_INDEX:-}${UV_EXTRA_INDEX_URL:-}${UV_FIND_LINKS:-}${UV_CONFIG_FILE:-}" ]; then
        [ -z "${PIP_INDEX_URL:-}" ] || export UV_DEFAULT_INDEX="$PIP_INDEX_URL"
        [ -z "${PIP_EXTRA_INDEX_URL:-}" ] || export UV_INDEX="$PIP_EXTRA_INDEX_URL" UV_INDEX_STRATEGY="${UV_INDEX_STRATEGY:-unsafe-best-match}"
        [ -z "${PIP_FIND_LINKS:-}" ] || export UV_FIND_LINKS="$(printf '%s' "$PIP_FIND_LINKS" | tr ' ' ',')"
    elif [ -z "${PIP_INDEX_URL:-}${PIP_EXTRA_INDEX_URL:-}${PIP_FIND_LINKS:-}" ]; then
        [ -z "${UV_DEFAULT_INDEX:-}" ] || export PIP_INDEX_URL="$UV_DEFAULT_INDEX"
        [ -z "${UV_INDEX:-}${UV_EXTRA_INDEX_URL:-}" ] || export PIP_EXTRA_INDEX_URL="${UV_INDEX:-} ${UV_EXTRA_INDEX_URL:-}"
        [ -z "${UV_FIND_LINKS:-}" ] || export PIP_FIND_LINKS="$(printf '%s' "$UV_FIND_LINKS" | tr ',' ' ')"
    fi
    [ -n "$UV_DEFAULT_INDEX" ] || unset UV_DEFAULT_INDEX
    [ -z "${PIP_TRUSTED_HOST:-}" ] || export UV_INSECURE_HOST="${UV_INSECURE_HOST:-$PIP_TRUSTED_HOST}"
    [ -z "${PIP_CERT:-}" ] || export SSL_CERT_FILE="${SSL_CERT_FILE:-$PIP_CERT}"
    [ -z "${PIP_PROXY:-}" ] || export ALL_PROXY="${ALL_PROXY:-$PIP_PROXY}"
    # Where this site's packages come from, in words, if that is not PyPI alone. Passwords in addresses are not shown.
    sources=$(printf '%s ' ${PIP_INDEX_URL:-} ${PIP_EXTRA_INDEX_URL:-} ${PIP_FIND_LINKS:-} | sed -E 's|//[^/@ ]*@|//|g; s/ +$//; s/ +/, /g')
    if [ -n "${PIP_NO_INDEX:-}" ]; then no_index=--no-index; else no_index=; fi
    # 1 if files are checked against requirements.lock. A site's own index may have builds of its own.
    hashes=${HASHES:-$([ -z "$sources$no_index" ] && echo 1 || echo 0)}
}
say_what_is_aside() {
    what=$(printf '%s' "${aside# }" | sed 's/ /, /g; s/_(with_its_own_torch)/ (with a torch in it)/')
    [ -z "$of_pip_conf" ] || what="$what${what:+, and }pip.conf's $(printf '%s' "$of_pip_conf" | sed 's/ /, /g')"
    [ -z "$what" ] || say "Set aside here, because the course needs exact versions in an environment of its own: $what."
}

# The newest Python that fits, in $python; $needed is in words which ones do.
find_python() {
    needed="Python 3.$oldest to 3.$newest"
    [ "$oldest" -lt "$newest" ] || needed="Python 3.$oldest"
    fits="import platform, sys
on_intel_mac = sys.platform == 'darwin' and platform.machine() == 'x86_64'
raise SystemExit(not (3, $oldest) <= sys.version_info[:2] <= (3, $newest) or on_intel_mac)"
    if [ -n "${PYTHON:-}" ]; then set -- "$PYTHON"; else
        set -- python3 python
        minor=$oldest
        while [ "$minor" -le "$newest" ]; do
            set -- "python3.$minor" "$@"
            minor=$((minor + 1))
        done
    fi
    python='' without_venv='' unfit=''
    for candidate in "$@"; do
        what=$("$candidate" -c 'import platform; print(platform.python_version(), platform.machine())' 2>/dev/null) || continue
        if ! "$candidate" -c "$fits" 2>/dev/null; then
            unfit="$unfit${unfit:+, }$candidate is $what"
        elif ! command -v uv >/dev/null && ! "$candidate" -c 'import ensurepip, venv' 2>/dev/null; then
            without_venv=${without_venv:-$candidate}
        else
            python=$(command -v "$candidate")
            return
        fi
    done
    if [ -n "$without_venv" ]; then
        stop "$without_venv cannot make virtual environments. On Debian and Ubuntu: apt install $(basename "$without_venv")-venv"
    fi
    say "The course needs $needed, and none was found${PYTHON:+ at $PYTHON}${unfit:+ ($unfit)}."
    [ -z "${LMOD_CMD:-}${MODULESHOME:-}" ] && get="Install one" || get="\`module avail python\` lists those of this machine. Load one"
    say "$get, or name it: make setup PYTHON=/path/to/python3.$newest"
    stop "uv fetches one without administrator rights: \`uv python install 3.$newest\`, then \`make setup PYTHON=\"\$(uv python find 3.$newest)\"\`"
}

# The build of torch for this machine. PyPI's is for CUDA 13 on Linux, and leaves out the GPUs before Turing (7.5).
fitting_build() {
    [ "$(uname -s)" = Linux ] || { echo pypi && return; }
    gpus=$(nvidia-smi --query-gpu=driver_version,compute_cap --format=csv,noheader 2>/dev/null) || gpus=
    printf '%s\n' "$gpus" | LC_ALL=C awk -F', ' '
        BEGIN { best = "pypi" }
        $1 + 0 < 580 || $2 + 0 < 7.5 { if (best != "cpu") best = "cu126" }
        $1 + 0 < 525 { best = "cpu" }
        END { print best }'
}

# Whether pip finds a package in exactly this version: offers torch 2.13.0+cpu [pip's options]. $pip_of is the Python
# whose pip is asked, and $for_target pip's options for a machine that is not this one.
offers() {
    name=$1 version=$2
    shift 2
    # pip asks, for it knows this machine's proxies and certificates.
    found=$("$pip_of" -m pip index versions --timeout 5 --retries 0 $no_index ${for_target:-} "$@" "$name" 2>/dev/null) || found=
    case ", $(printf '%s\n' "$found" | sed -n 's/^Available versions: //p')," in *", $version,"*) ;; *) return 1 ;; esac
}

# From where torch comes, in $origin, and which build it is, in $build. `site` is where pip looks at this site, `pytorch`
# is PyTorch's own index, and `pypi` is whatever pip finds by itself. Arguments: the build that is wanted, and `auto` if
# nobody named it. A site that replaces PyPI's index is not led past it unless a build was named.
choose_torch() {
    build=$1 index=https://download.pytorch.org/whl/$build origin=pypi
    [ "$build" != pypi ] || return 0
    if [ -n "$sources" ] && offers torch "$(pinned torch)+$build"; then
        origin=site
    elif [ -z "$no_index" ] && { [ "$2" != auto ] || [ -z "${PIP_INDEX_URL:-}" ]; } &&
        offers torchvision "$(pinned torchvision)+$build" --index-url "$index"; then
        origin=pytorch
    elif [ "$2" = auto ]; then
        build=pypi
    else
        stop "PyTorch's index has no torch $(pinned torch) for $build, or does not answer. \`TORCH=auto make setup\` chooses a build by itself."
    fi
}
say_where_torch_is_from() {
    case ${system:-$(uname -s)} in
    Linux)
        large=" On Linux it brings CUDA, which is a download of several gigabytes."
        copy=" If it is a copy of PyPI's, it brings CUDA, which is several gigabytes." ;;
    *) large='' copy='' ;;
    esac
    case $origin in
    site) say "torch $(pinned torch)+$build is where this site's packages come from ($sources)." ;;
    pytorch) say "torch's build for $build comes from PyTorch's index (\`TORCH=… make setup\` chooses a different one)." ;;
    pypi)
        if [ -n "$no_index${PIP_INDEX_URL:-}" ]; then
            say "torch $(pinned torch) is where this site's packages come from${sources:+ ($sources)}.$copy"
        elif [ "$1" != pypi ]; then
            say "PyTorch's index of builds for $1 does not answer, so torch comes from PyPI.$large"
        elif [ -n "$large" ]; then
            say "torch comes from PyPI.$large"
        fi ;;
    esac
}

# Sections of the lock file as a requirements file, with hashes if they are checked: locked course mpich
locked() {
    awk -v wanted=" $* " -v hashes="$hashes" '
        /^# \[/ { taken = index(wanted, " " substr($2, 2, length($2) - 2) " ") }
        /^#/ || !taken || (!hashes && /^ /) { next }
        { if (!hashes) sub(/ *\\$/, ""); print }' "$lock"
}

# Make an environment beside .venv, whose Python sees the packages of .venv after its own: make_beside FOLDER
make_beside() {
    rm -rf "$1"
    .venv/bin/python -m venv --without-pip "$1"
    printf 'import site; site.addsitedir("%s")\n' "$(packages_of .venv/bin/python)" >"$(packages_of "$1/bin/python")/course.pth"
}
packages_of() { "$1" -c 'import sysconfig; print(sysconfig.get_path("purelib"))'; }

# Run an installer; it leaves what it says in $said.
run() { said=$("$python" tools/installer_progress.py "$@"); }
# What they say when they fail is put into a line where the reason is known. Argument: what to run again.
failed() {
    free=$({ df -Pk "$target" 2>/dev/null || df -Pk .; } | awk 'NR == 2 { print int($4 / 1024) }')
    case $said in *"No space left"* | *"os error 28"* | *"quota exceeded"*) free=0 ;; esac
    [ "$free" -gt 50 ] || stop "The disk is full. $target needs 2 GB, and ${TMPDIR:-/tmp} some more for a while. Make room, then run \`$1\` again: it goes on from there."
    if [ -n "${WHEELS:-}" ]; then
        say "$(printf '%s\n' "$said" | tail -n 25)"
        stop "The lines above name what is wrong. If it is a file of $WHEELS that is missing or damaged, copy that folder again, then run \`$1 WHEELS=$WHEELS\`: it goes on from there."
    fi
    case $said in *"MATCH THE HASHES"* | *"Hash mismatch"*)
        say "$(printf '%s\n' "$said" | tail -n 25)"
        stop "A file is not the one that $lock names. A download that broke off looks like that, and then \`$1\` goes on. If it happens again, the files come from a source with builds of its own; \`HASHES=0 $1\` takes those." ;;
    *"onnection broken"* | *onnectionError* | *"timed out"* | *ncomplete* | *"Failed to fetch"* | *"error sending request"*)
        stop "The network is down, or the connection broke. Run \`$1\` again once it is back: it goes on from there." ;;
    *ResolutionImpossible* | *"No matching distribution"* | *"No solution found"*)
        if [ -n "$sources" ]; then
            say "$(printf '%s\n' "$said" | tail -n 25)"
            stop "Where this site's packages come from ($sources), one is missing in the version that constraints.txt names, or nothing answers. \`$1\` goes on from there once that is mended."
        fi ;;
    esac
    say "$(printf '%s\n' "$said" | tail -n 25)"
    stop "The installation failed. The lines above say where. \`$1\` goes on from there."
}
