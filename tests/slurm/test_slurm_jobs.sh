#!/bin/bash
# The scripts of jobs/ under a Slurm of this test's own (slurm.sh): how they end, what they write, and which GPUs and cores their
# tasks see.
set -euo pipefail
# shellcheck source=tests/slurm/slurm_test.sh
. "$(dirname "${BASH_SOURCE[0]}")/slurm_test.sh"

seed=${HYPERSORT_SEED:-$RANDOM}
echo "seed $seed"
export OPTIONS="--type u64 --engine host --verify"

# in_out NAME KEYS: what a user would write.
in_out() { echo "--export=ALL,IN=$2.u64,OUT=$1.out"; }

# The same with a trace, whose name could be a pattern.
traced() { echo "$(in_out "$1" "$2"),OPTIONS=$OPTIONS --trace $1[1].json"; }

two_cores=$([ "$(sed -n 's/^Cpus_allowed_list:\t//p' /proc/self/status)" = 0-1 ] && echo yes || echo no)

# ---- Normal ends -----------------------------------------------------------------------------------------

normal_ends()
{
    keys many 123457 "$seed"
    keys few 3 "$((seed + 1))"
    local name
    for name in one_node eight by_mpirun in_turns; do
        echo other >"${name}1.json" # no word of OPTIONS is a pattern that it fits
    done
    submit one_node single-node.sbatch "${small[@]}" "$(traced one_node many)"
    submit one_task single-node.sbatch "${small[@]}" --ntasks-per-node=1 "$(in_out one_task many)"
    submit eight multi-node.sbatch "${small[@]}" "$(traced eight many)"
    submit three multi-node.sbatch "${small[@]}" --nodes=3 --ntasks-per-node=1 "$(in_out three few)"
    submit by_mpirun mpirun.sbatch "${small[@]}" "$(traced by_mpirun many)"
    submit in_turns requeue.sbatch "${small[@]}" "$(traced in_turns many)"
    for name in one_node one_task eight three by_mpirun in_turns; do
        ends $name COMPLETED 0:0
    done
    for name in one_node one_task eight by_mpirun in_turns; do
        right $name.out many
    done
    right three.out few
    for name in one_node eight by_mpirun in_turns; do
        same "$name: the trace, and the file that its name would fit" \
            "$(head -c 1 "${name}[1].json") $(cat "${name}1.json")" "{ other" $name.log
    done
    nothing_left
    same "tasks of 'eight'" "$(of eight NumNodes) $(of eight NumTasks)" "4 8"
    says eight '^ranks  *8,' || fail "the report of 'eight' does not say 8 ranks" eight.log
    says by_mpirun '^ranks  *8,' || fail "the report of 'by_mpirun' does not say 8 ranks" by_mpirun.log
    says eight "^job  *${job[eight]}, slurm$" || fail "the report does not name the job" eight.log
    says eight '^hosts  *4: node1,node2,node3,node4$' || fail "the report does not name the nodes" eight.log
}

# IN is one file; others go into OPTIONS, before the options.
several_inputs()
{
    local script
    keys part 4321 "$((seed + 2))"
    cat many.u64 part.u64 few.u64 >together.u64
    order <together.u64 >together.sorted
    for script in single-node multi-node mpirun requeue; do
        OPTIONS="part.u64 few.u64 $OPTIONS" submit "of_$script" $script.sbatch "${small[@]}" --nodes=1 "$(in_out "of_$script" many)"
    done
    for script in single-node multi-node mpirun requeue; do
        ends "of_$script" COMPLETED 0:0
        right "of_$script.out" together
    done
}

# --progress: lines that are whole, though several processes write to the log, and name the job.
progress_lines()
{
    local name
    for name in one_node eight by_mpirun; do
        checks=$((checks + 1))
        if [ "$(grep -c "^hypersort: job ${job[$name]} .* read 100 % of " $name.log)" != 1 ]; then
            fail "$name: no line says that all is read" $name.log
        fi
        if grep 'hypersort: ' $name.log |
            grep -vE "^hypersort: job ${job[$name]} [0-9:]{8} [0-9]+ s  [a-z0-9_]+ ([0-9]+ % )?of [0-9.]+ [KMG]?i?B( |:|$)"; then
            fail "$name: lines of progress are not whole" $name.log
        fi
    done
}

# ---- Bad ends: sbatch --wait returns the command's exit code -----------------------------------------------

bad_input()
{
    local code=0
    head -c 7 many.u64 >torn.u64
    sbatch --wait --output=torn.log "${small[@]}" "$(in_out torn torn)" "$SOURCE/jobs/multi-node.sbatch" >/dev/null || code=$?
    same "bad input, through sbatch --wait" $code 2 torn.log
    same "lines of a bad input" "$(grep -c '^hypersort: ' torn.log)" 1 torn.log
    submit torn_too mpirun.sbatch "${small[@]}" "$(in_out torn torn)"
    submit missing single-node.sbatch "${small[@]}" "$(in_out missing nowhere)"
    submit turned_down requeue.sbatch "${small[@]}" "$(in_out torn torn)"
    ends torn_too FAILED 2:0
    ends missing FAILED 3:0
    ends turned_down FAILED 2:0
    same "outputs of bad inputs" "$(compgen -G 'torn*.out' || true)$(compgen -G 'missing*.out' || true)" ""
}

# ---- Arrays ------------------------------------------------------------------------------------------------

array()
{
    local n name
    mkdir files twice
    n=0
    for name in a b c d; do
        (cd files && keys "$name" "$((n * 4321))" "$((seed + n))" && mv "$name.sorted" ..)
        n=$((n + 1))
    done
    cp files/d.u64 ./-f.u64
    { ls -d "$PWD"/files/* && echo -f.u64; } >list
    cp files/d.u64 'twice/e[1.u64'
    cp files/d.u64 'e[1.u64'
    ls -d 'e[1.u64' 'twice/e[1.u64' >twice.list
    submit of_list array.sbatch --cpus-per-task=1 --time=5 --array=1-5 --output='of_list_%a.log' --export=ALL,IN=list,OUT=of_list
    submit of_folder array.sbatch --cpus-per-task=1 --time=5 --array=1-5 --output='of_folder_%a.log' \
        --export=ALL,IN=files,OUT=of_folder
    submit of_twice array.sbatch --cpus-per-task=1 --time=5 --array=2 --output='of_twice_%a.log' \
        --export=ALL,IN=twice.list,OUT=of_twice
    for name in of_list of_folder of_twice; do
        until_true all_over $name
    done
    same "array of a list" "$(ends_of of_list)" "1 COMPLETED 0:0,2 COMPLETED 0:0,3 COMPLETED 0:0,4 COMPLETED 0:0,5 COMPLETED 0:0" of_list_1.log
    same "array of a folder, one task too many" "$(ends_of of_folder)" \
        "1 COMPLETED 0:0,2 COMPLETED 0:0,3 COMPLETED 0:0,4 COMPLETED 0:0,5 FAILED 2:0" of_folder_5.log
    local code=0
    env -u SLURM_ARRAY_TASK_ID IN=list bash "$SOURCE/jobs/array.sbatch" 2>no_array.log || code=$?
    same "no array" "$code $(cat no_array.log)" "2 array.sbatch: this job is no task 1 to N of an array: sbatch --array=1-N" no_array.log
    same "array of a list with two files of a name" "$(ends_of of_twice)" "2 FAILED 2:0" of_twice_2.log
    grep -q "^job  *${job[of_list]}_3, slurm$" of_list_3.log || fail "the report does not name the array's task" of_list_3.log
    for name in a b c d; do
        right of_list/$name.u64 $name
        right of_folder/$name.u64 $name
    done
    right of_list/-f.u64 d
}

all_over() { [[ ! $(scontrol --oneliner show job "${job[$1]}") =~ JobState=(PENDING|RUNNING|COMPLETING) ]]; }
ends_of()
{
    scontrol --oneliner show job "${job[$1]}" |
        sed -n 's/.* ArrayTaskId=\([0-9]*\) .* JobState=\([A-Z]*\) .* ExitCode=\([0-9:]*\) .*/\1 \2 \3/p' | sort -n | paste -sd,
}

# ---- Scaling ---------------------------------------------------------------------------------------------

scaling()
{
    OPTIONS="--engine host" submit scaling scaling.sbatch "${small[@]}" --export=ALL,OUT=table,KEYS=1K,RUNS=1
    ends scaling COMPLETED 0:0
    same "the tables' rows" "$(cut -d, -f1-4 table.csv | paste -sd' ')" \
        "scaling,nodes,tasks,keys strong,1,1,1024 strong,1,2,1024 strong,2,4,1024 strong,4,8,1024 $(
        )weak,1,1,1024 weak,1,2,2048 weak,2,4,4096 weak,4,8,8192" scaling.log
    same "rows with a rate and an efficiency" "$(grep -cE '^(strong|weak),.*,[0-9.e+-]+,[0-9.]+$' table.csv)" 8 table.csv
    same "efficiencies of the first rows" "$(grep -c ',1,1,1024,.*,1.000$' table.csv)" 2 table.csv
    same "rows of the Markdown" "$(grep -c '^|' table.md)" 10 table.md
    OPTIONS="--engine host" submit too_many scaling.sbatch "${small[@]}" --export=ALL,OUT=none,KEYS=1T,RUNS=1
    ends too_many COMPLETED 0:0
    same "rows where memory lacks" "$(cat none.csv)" "scaling,nodes,tasks,keys,gkeys_per_s,efficiency" too_many.log
    same "lines that say so" "$(grep -c ' tasks: left out: ' too_many.log)" 8 too_many.log
}

# ---- What a task sees ----------------------------------------------------------------------------------------

# gpus WANTED OPTION...: CUDA_VISIBLE_DEVICES of the two tasks of a node.
gpus()
{
    local seen
    seen=$(srun --nodes=1 --ntasks=2 "${@:2}" bash -c 'echo "${CUDA_VISIBLE_DEVICES-unset}"' | sort | paste -sd' ')
    same "GPUs with ${*:2}" "$seen" "$1"
}

gpu_views()
{
    gpus "0,1 0,1" --gpus-per-node=2
    gpus "0,1 0,1" --gres=gpu:2
    gpus "0 1" --gpus-per-task=1
    gpus "0 1" --gpus-per-node=2 --gpu-bind=single:1
    gpus "unset unset" --gpus-per-node=2 --gpu-bind=none
    gpus "0 0" --gpus-per-node=1
}

# cores WANTED OPTION...: the cores that the command uses on each of two tasks, and whether it says that Slurm chose.
cores()
{
    local seen
    seen=$(srun --mpi=pmix --nodes=1 --exclusive "${@:2}" "$HYPERSORT" info --engine host --json |
        grep -oE '"cpus": "[^"]*", "bound_by_launcher": [a-z]*' | sed 's/"//g; s/cpus: //; s/bound_by_launcher: //' | paste -sd' ')
    same "cores with ${*:2}" "$seen" "$1"
}

core_views()
{
    if [ "$two_cores" != yes ]; then
        echo "not tested: which cores a task gets; nodes here are cores 0 and 1, and these are not what this process may use"
        return
    fi
    cores "0, true 1, true" --ntasks=2 --cpu-bind=cores
    cores "1, true 0, true" --ntasks=2 --cpu-bind=map_cpu:1,0
    cores "1, true 1, true" --ntasks=2 --cpu-bind=mask_cpu:2,2
    cores "0, true" --ntasks=1 --cpus-per-task=1 --cpu-bind=map_cpu:0
    cores "0, false 1, false" --ntasks=2 --cpu-bind=none
}

# ---- While it runs -------------------------------------------------------------------------------------------

# holding NAME SCRIPT OPTION...: submit a job that is held after the local sort, and wait until it is; `ranks` are its
# processes.
ranks=()
holding()
{
    submit "$1" "$2" "${small[@]}" --nodes=2 "$(in_out "$1" many),HYPERSORT_FAULT=holdsort:1" "${@:3}"
    until_true says "$1" '^hypersort: held '
    mapfile -t ranks < <(processes hypersort "$1")
    same "$1: ranks" ${#ranks[@]} 4 "$1.log"
}

# ended NAME: no process of it is left, and it has written no output.
ended()
{
    until_true no_process "$1"
    same "output of $1" "$(compgen -G "$1.out" || true)" ""
}
ends_before_its_time()
{
    holding cancelled multi-node.sbatch
    masks
    scancel "${job[cancelled]}"
    ends cancelled CANCELLED 0:15
    ended cancelled
    nothing_left
    # When a rank or mpirun is lost, all are killed, and nobody is left to remove the temporary.
    holding killed multi-node.sbatch
    kill -KILL "${ranks[2]:-}"
    ends killed FAILED 137:0
    ended killed
    holding lost mpirun.sbatch
    kill -KILL "$(processes mpirun)"
    ends lost FAILED 137:0
    ended lost
    rm -f -- *.part
}

# Every thread of a rank is on the rank's core, and the ranks of a node are on both.
masks()
{
    local rank
    if [ "$two_cores" = yes ]; then
        same "cores of all threads of two ranks on two nodes" "$(for rank in "${ranks[@]}"; do
            sed -n 's/^Cpus_allowed_list:\t//p' "/proc/$rank"/task/*/status | sort -u
        done | sort | paste -sd' ')" "0 0 1 1"
    fi
}

normal_ends
progress_lines
parts=(several_inputs bad_input array scaling gpu_views core_views)
[ "${HAS_FAULTS:-OFF}" != ON ] || parts+=(ends_before_its_time)
for part in $(drawn_half "${parts[@]}"); do
    $part
done
same "processes of the command at the end" "$(processes hypersort)" ""
finish
