# shellcheck shell=bash
# What the command's test scripts share; sourced. They work in an empty folder that is removed at the end.

work=$(mktemp -d)
trap 'rm -rf "$work" "$work".*' EXIT
cd "$work" || exit 1
failures=0
# These are hundreds of short runs on one machine: without the search for networks, each starts in half the time.
export OMPI_MCA_pml=ob1 OMPI_MCA_btl=self,vader
# A rank without a launcher starts no daemon for processes that it might spawn.
export OMPI_MCA_ess_singleton_isolated=1
# Once a rank has ended with an exit code, mpirun waits a second or two before it kills the others. The ranks of a command that fails
# agree on their code and end together, so nothing needs to wait.
export OMPI_MCA_odls_base_sigkill_timeout=0

# patient COMMAND...: a run in which a rank is killed or told to stop. mpirun tells the others, which then have a second to tidy up.
patient() { OMPI_MCA_odls_base_sigkill_timeout=1 "$@"; }

# apart COMMAND...: a run that begins or ends while another one does. Open MPI keeps what belongs to runs below one folder, makes the
# folder with the first run and removes it with the last: if two runs begin there at once, one may fail.
apart()
{
    local status=0
    mkdir -p "$work.apart"
    OMPI_MCA_orte_tmpdir_base=$work.apart "$@" || status=$?
    rm -rf "$work.apart"
    return $status
}
# shellcheck source=tests/support/draw.sh
. "$SOURCE/tests/support/draw.sh"
# shellcheck source=jobs/find_python.sh
. "$SOURCE/jobs/find_python.sh"
python=$(python_with numpy || python_with json || true)

# Open MPI's launcher is told to say nothing about ranks that fail; other launchers have no such option.
quiet=
# shellcheck disable=SC2086  # MPIRUN holds options
if $MPIRUN --version 2>&1 | grep -qE 'Open MPI|OpenRTE'; then
    quiet=--quiet
fi

# need_faults: skip the test where the build has no fault sites.
need_faults()
{
    if [ "${HAS_FAULTS:-OFF}" != ON ]; then
        echo "skipped: this build has no fault sites (HYPERSORT_FAULTS=OFF)"
        exit 77
    fi
}

# need_numpy: set $numpy to a Python with NumPy, or skip the test.
need_numpy()
{
    if ! numpy=$(python_with numpy); then
        echo "skipped: no python3 with numpy"
        exit 77
    fi
}

# need_h5py: the same for $h5py, with h5py and NumPy.
need_h5py()
{
    if ! h5py=$(python_with h5py,numpy); then
        echo "skipped: no python3 with h5py"
        exit 77
    fi
}

# draw_seed: set $seed, and let $RANDOM begin with it.
draw_seed()
{
    seed=${HYPERSORT_SEED:-$RANDOM}
    RANDOM=$seed
    echo "seed $seed"
}

# python_cases PYTHON SCRIPT SEED NUMBER...: run the cases that a script in tests/command draws; the script is also told how to run the
# command.
python_cases()
{
    : >"$work.out" 2>"$work.err"
    # shellcheck disable=SC2086  # MPIRUN is words
    "$1" "$SOURCE/tests/command/$2" "${@:3}" "$HYPERSORT" $MPIRUN --quiet -n RANKS || fail "cases above"
}

# run_parts PART...: run half of these functions of the test (drawn_half() says when all), or those that PARTS names. Before each, call
# `afresh`, if the test has it.
run_parts()
{
    local part
    for part in ${PARTS:-$(drawn_half "$@")}; do
        if declare -F afresh >/dev/null; then afresh; fi
        $part
        echo "$part: done after $SECONDS s"
    done
}

# fail TEXT: count a failure and show the last run.
fail()
{
    failures=$((failures + 1))
    echo "failed: $1"
    sed 's/^/    stdout: /' "$work.out" | head -n 20
    sed 's/^/    stderr: /' "$work.err" | head -n 20
}

# without_warnings FILE...: remove a warning of Open MPI's event loop, which may notice, as it ends, that a descriptor it watches is closed.
without_warnings() { sed -i '/^\[warn\] Epoll /d' "$@"; }

# run RANKS ARGUMENT...: run the command on that many ranks; 0 means one rank without a launcher. $code, $work.out and $work.err are
# the outcome. A run that hangs ends with 124.
run()
{
    local launcher="$MPIRUN $quiet -n $1"
    [ "$1" = 0 ] && launcher=
    code=0
    # shellcheck disable=SC2086  # MPIRUN holds options
    timeout 300 $launcher "$HYPERSORT" "${@:2}" >"$work.out" 2>"$work.err" </dev/null || code=$?
    without_warnings "$work.err"
}

# ok RANKS ARGUMENT...: a run that must succeed and say nothing on stderr.
ok()
{
    run "$@"
    if [ "$code" != 0 ] || [ -s "$work.err" ]; then
        fail "${*:2} on $1 ranks: exit code $code"
    fi
}

# Print what is in the folder: every file's name and checksum. So temporaries and changed inputs are seen.
contents() { find . -type f -exec sha256sum {} + | sort -k 2; }

# runs_of OUTPUT: print what the directory of its runs is called in a temporary directory. The name has a mark of where the output lies.
runs_of()
{
    head -c 8 /dev/zero >"$work.key"
    "$HYPERSORT" sort "$work.key" --type u64 -o "$1" --runs 1 -T "$work.none" 2>&1 |
        sed -n 's/.*\.none\/\(.*\.hypersort-runs\): .*/\1/p'
    rm "$work.key"
}

# refused RANKS CODE WORDS ARGUMENT...: a run that must end with CODE, write one line to stderr that contains all
# WORDS (separated by |), print nothing and leave the folder as it was.
refused()
{
    local ranks=$1 expected=$2 words=$3 before lines word
    shift 3
    before=$(contents)
    run "$ranks" "$@"
    if [ "$code" != "$expected" ]; then
        fail "$* on $ranks ranks: exit code $code, not $expected"
        return
    fi
    lines=$(wc -l <"$work.err")
    if [ "$lines" != 1 ] || [ -s "$work.out" ]; then
        fail "$* on $ranks ranks: not one line on stderr and none on stdout"
    fi
    while IFS= read -r -d '|' word; do
        if ! grep -qF -- "$word" "$work.err"; then
            fail "$* on $ranks ranks: the error line lacks '$word'"
        fi
    done <<<"hypersort: |$words|"
    if [ "$(contents)" != "$before" ]; then
        fail "$* on $ranks ranks: files were left or changed"
        diff <(echo "$before") <(contents) | head -n 5
    fi
}

# json PYTHON-EXPRESSION: the last run must have printed one JSON object, and the expression must hold for it as `r`.
json()
{
    if [ -z "$python" ]; then
        [ "$(wc -l <"$work.out")" = 1 ] || fail "--json: not one line"
    elif ! "$python" -c "import json, sys; r = json.load(sys.stdin); sys.exit(not ($1))" <"$work.out"; then
        fail "--json: not so: $1"
    fi
}

# little NUMBER BYTES: print the number as little-endian bytes.
little()
{
    local i
    for ((i = 0; i < $2; i++)); do
        # shellcheck disable=SC2059  # the format is the byte
        printf "\\x$(printf %02x $(($1 >> 8 * i & 255)))"
    done
}

# npy VERSION DICTIONARY: print an .npy header.
npy()
{
    printf '\x93NUMPY'
    little "$1" 1
    little 0 1
    little $((${#2} + 1)) $(($1 == 1 ? 2 : 4))
    printf '%s\n' "$2"
}

finish()
{
    if [ "$failures" != 0 ]; then
        echo "$failures failures"
        exit 1
    fi
}
