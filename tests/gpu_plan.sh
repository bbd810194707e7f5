#!/usr/bin/env bash
# Runs everything that is to be known of a GPU, from an unpacked archive of tests/gpu.sh pack: no compiler, no CMake, no network.
#
#   gpu_plan.sh [stage...]        sanity numerics layers steps profile studies sanitizer (the default: all, in this order)
#
# STEPS_ONLY, PROFILE_ONLY and SANITIZER_ONLY are patterns of rows and programs, STUDIES and SANITIZER_TOOLS lists of names;
# STEPS_SECONDS, PROFILE_SECONDS and SANITIZER_SECONDS are limits.
#
# A line for each result, as it comes: stage, name, ok or what went wrong, seconds, figures. A failure never stops the rest; what hangs
# is ended by a limit of its own; only sanity ends the plan, because nothing else would run either. PLAN_SECONDS (default 420) is the
# time for all. Results and logs are in the folder OUT, or in ./out. Needs the driver and cuBLAS, which may be that of PyTorch;
# python3 for layers and steps, with PyTorch for the times beside ours; compute-sanitizer for the last stage.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")" || exit 2
SECONDS=0
out=${OUT:-$PWD/out}
logs=$PWD/logs
mkdir -p "$out" "$logs"
total=${PLAN_SECONDS:-420}
jobs=${PLAN_JOBS:-8}
stages=${*:-sanity numerics layers steps profile studies sanitizer}
left() { echo $((total > SECONDS ? total - SECONDS : 0)); }
least() { echo $(($1 < $2 ? $1 : $2)); }

# say STAGE NAME VERDICT SECONDS FIGURES
say() { printf '%s\t%s\t%s\t%s\t%s\n' "$@" | tee -a "$out/results.tsv"; }
keep_logs() { tar -czf "$out/logs.tgz" logs; }

# Where cuBLAS is: beside the toolkit, or in the packages of PyTorch.
find_cublas() {
    ldconfig -p 2>/dev/null | grep -q libcublasLt.so.13 && return
    local folder
    for folder in /usr/local/cuda/lib64 /usr/local/cuda/targets/x86_64-linux/lib \
        $(python3 -c 'import importlib.util as u, glob
for r in getattr(u.find_spec("nvidia"), "submodule_search_locations", None) or []: print(*glob.glob(r + "/*/lib"))' 2>/dev/null); do
        [ -e "$folder/libcublasLt.so.13" ] || continue
        export LD_LIBRARY_PATH="$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
        return
    done
    say sanity cublas "libcublasLt.so.13 was not found" 0 ""
}

# one STAGE NAME LIMIT COMMAND...: runs it into logs/STAGE-NAME.txt and says how it ended, with doctest's counts.
one() {
    local stage=$1 name=$2 limit=$3 status=0 start=$EPOCHREALTIME verdict=ok log
    shift 3
    log=$logs/$stage-$name.txt
    timeout -k 3 "$limit" "$@" >"$log" 2>&1 || status=$?
    case $status in
    0) ;;
    124 | 137) verdict="not finished in $limit s" ;;
    *) verdict="FAILED, status $status" ;;
    esac
    say "$stage" "$name" "$verdict" "$(awk -v a="$start" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f", b - a }')" \
        "$(grep -a -E '^\[doctest\] (test cases|assertions)|ERROR SUMMARY' "$log" | sed 's/\[doctest\] //; s/ \+/ /g' | tr '\n' ' ')"
    return $status
}
# queue ARGUMENTS OF ONE...: in the background, so many at a time; finish waits for all of them.
queued=()
queue() {
    while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do wait -n; done
    one "$@" &
    queued+=($!)
}
finish() {
    wait ${queued[@]+"${queued[@]}"}
    queued=()
}
tests() { (cd bin && ls test_gpu_* 2>/dev/null); }

sanity() {
    nvidia-smi --query-gpu=name,compute_cap,memory.total,driver_version,clocks.sm,clocks.max.sm --format=csv,noheader |
        tee "$out/gpu.txt"
    echo "$(date -u '+%Y-%m-%d %H:%M') UTC, commit $(cut -c1-12 commit), $(lscpu | sed -n 's/^Model name: *//p')" | tee -a "$out/gpu.txt"
    one sanity program_by_nvcc 40 bin/program_by_nvcc && one sanity context 40 bin/test_gpu_context_test -aa=5 && return
    cat "$logs"/sanity-*.txt
    return 1
}
numerics() {
    local name
    for name in $(tests); do queue numerics "$name" "$(least 110 "$(left)")" bin/"$name" -aa=20 -d; done
    finish
}
sanitizer() {
    local tool name options
    tool=$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)
    [ -x "$tool" ] || { say sanitizer all "compute-sanitizer was not found" 0 ""; return; }
    export TAPEGRAPH_GPU_ALLOCATOR=plain # every buffer an allocation of its own, so that its ends are seen
    # The first cases of each program: all of them would take many minutes. Races: in our kernels, not in cuBLAS's.
    for name in $(tests | grep -E "${SANITIZER_ONLY:-.}"); do
        for check in ${SANITIZER_TOOLS:-memcheck racecheck}; do
            [ "$(left)" -gt 8 ] || { say sanitizer "$check of $name" "left out: no time" 0 ""; continue; }
            options=(--tool "$check" --error-exitcode 86)
            [ $check = memcheck ] || options+=(--kernel-name kernel_substring=tapegraph)
            queue sanitizer "$check-$name" "$(least "${SANITIZER_SECONDS:-60}" "$(left)")" "$tool" "${options[@]}" bin/"$name" -aa=5 "-l=${SANITIZER_CASES:-2}"
        done
    done
    finish
    unset TAPEGRAPH_GPU_ALLOCATOR
}
# measure NAME LIMIT PROGRAM ARGUMENT...: lines into $out/NAME.tsv.
measure() {
    local status=0 start=$SECONDS
    timeout -k 3 "$2" "bin/$3" "${@:4}" >"$out/$1.tsv" 2>"$logs/layers-$1.txt" || status=$?
    say layers "$1" "status $status, $(wc -l <"$out/$1.tsv") lines" $((SECONDS - start)) "$(tail -n 1 "$logs/layers-$1.txt")"
}
layers() {
    measure layers 30 bench_gpu_layers 128
    TAPEGRAPH_GPU_PLANS=measured TAPEGRAPH_LOG_PLACEMENT=1 measure layers_measured 40 bench_gpu_layers 128
    measure recurrent 30 bench_gpu_recurrent
    PYTHONUNBUFFERED=1 timeout -k 3 45 python3 benchmarks/gpu_table.py "$out/layers.tsv" --measured "$out/layers_measured.tsv" \
        --recurrent "$out/recurrent.tsv" --seconds "${TABLE_SECONDS:-36}" >"$out/layers.md" 2>"$logs/layers-table.txt"
    say layers table "status $?" "$SECONDS" "$(tail -n 1 "$logs/layers-table.txt")"
}
steps() {
    # shellcheck disable=SC2086
    PYTHONUNBUFFERED=1 timeout -k 3 "$(($(left) + 20))" python3 benchmarks/gpu_steps.py bin --seconds "${STEPS_SECONDS:-200}" \
        --layers "$out/layers.tsv" --out "$logs/steps.json" --only "${STEPS_ONLY:-}" ${STEPS_OPTIONS:-} 2>"$logs/steps.txt" | tee "$out/steps.tsv"
}
# PyTorch compiles meanwhile, a process for each model.
warm() {
    local pattern
    for pattern in '^cnn@' '^cnn/' '^rnn' '^conv1d' '^resnet' '^gpt'; do
        mkdir -p "logs/warm$pattern"
        PYTHONUNBUFFERED=1 timeout -k 3 "${WARM_SECONDS:-150}" python3 benchmarks/gpu_steps.py bin --warm "$pattern" --patience 120 \
            --out "logs/warm$pattern/steps.json" >>"$logs/warm.txt" 2>&1 &
    done
}
profile() {
    local seconds=${PROFILE_SECONDS:-50}
    PYTHONUNBUFFERED=1 timeout -k 3 "$(least $((seconds + 10)) "$(($(left) + 5))")" python3 benchmarks/gpu_steps.py bin \
        --seconds "$seconds" --turn 0.02 --rounds 1 --profiles "$logs/profiles" --out "$logs/profile.json" --no-compiled --only "${PROFILE_ONLY:-^(cnn@tf32/training/(128|1)$|rnn/training/128|conv1d_small/training/32|conv1d_medium@tf32/training/32|resnet18@tf32/training/128|gpt@tf32/training/16)}" \
        >"$logs/profile.txt" 2>&1
    say profile all "status $?" "$SECONDS" "$(find "$logs/profiles" -type f 2>/dev/null | wc -l) profiles"
}

# study NAME LIMIT PROGRAM ARGUMENT...: both modes, in folder $out/study-NAME.
study() {
    local start=$SECONDS status=0
    [ "$(left)" -gt 8 ] || { say studies "$1" "left out: no time" 0 ""; return; }
    LD_LIBRARY_PATH="${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$PWD/lib" timeout -k 3 "$(least "$2" "$(left)")" "bin/$3" "${@:4}" \
        --device gpu --fresh --out "$out/study-$1" >"$out/study-$1.txt" 2>"$logs/study-$1.txt" || status=$?
    say studies "$1" "status $status, $(grep -c -E '^(graph|eager) |^\|' "$out/study-$1.txt") lines" $((SECONDS - start)) \
        "$(tail -n 1 "$logs/study-$1.txt")"
}
# STUDIES (all of them): names of those that are run.
studies() {
    local wanted=" ${STUDIES:-rnn cnn modes} "
    case $wanted in *" rnn "*) study rnn 60 batch_study --model rnn --batch-sizes all --seconds 30 ;; esac
    case $wanted in *" cnn "*) study cnn 80 batch_study --batch-sizes all --seconds 40 ;; esac
    case $wanted in *" modes "*) study modes 80 mode_study --seconds 1 --sources arrays ;; esac
}

: >"$out/results.tsv"
find_cublas
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-4}
case " $stages " in *" steps "*) WARM=${WARM:-1} ;; esac
[ "${WARM:-0}" = 0 ] || warm
warming=$(jobs -rp)
jobs=$((jobs + $(wc -w <<<"$warming")))
for stage in $stages; do
    case $stage in layers | steps | profile | studies) # from here on the GPU is one program's alone
        # shellcheck disable=SC2086
        [ -z "$warming" ] || { kill $warming 2>/dev/null; wait; }
        jobs=${PLAN_JOBS:-8} warming=
        ;;
    esac
    start=$SECONDS
    if ! $stage && [ "$stage" = sanity ]; then
        say sanity all "FAILED: the plan ends" $((SECONDS - start)) ""
        keep_logs
        exit 1
    fi
    say "$stage" all ended $((SECONDS - start)) "$SECONDS s since the start"
    keep_logs
done
echo "== not well:"
grep -P '\t(FAILED|not finished|left out|status [1-9])' "$out/results.tsv"
! grep -q -P '\tFAILED' "$out/results.tsv"
