#!/usr/bin/env bash
# kill.sh openmpi|mpich MPIRUN PROGRAM: one of four processes is killed after step 11. The others must say what they wait for, and
# two processes must continue to the weights of a job that was not killed.
set -euo pipefail
kind=$1 mpirun=$2 program=$3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
ranks=("$mpirun") stay=()
if [ "$kind" = openmpi ]; then
    ranks+=(--oversubscribe)
    # Otherwise mpirun ends the others before they can say anything.
    stay=(--mca orte_abort_on_non_zero_status 0)
    # Who waits for rank 1, in which step, and with which sum.
    said='^rank 0: exchange: rank 0 waited 2\.[0-9] s for rank 1 in step 12, .+ \([0-9]+ bytes to send, [0-9]+ to receive\)'
else
    # Hydra ends the others within a second, and cannot be told not to: -disable-auto-cleanup breaks it (MPICH 4.0.2).
    said='EXIT CODE: 9|signal 9|SIGNAL: 9'
fi
whole=$("${ranks[@]}" -n 4 "$program" "$folder/whole")
echo "uninterrupted: $whole"
if timeout 60 "${ranks[@]}" "${stay[@]}" -n 4 "$program" "$folder/killed" 11 > "$folder/log" 2>&1; then
    echo "a job with a killed process ended well" >&2
    exit 1
fi
if ! grep -m 1 -E "$said" "$folder/log"; then
    cat "$folder/log" >&2
    exit 1
fi
ls "$folder/killed"
resumed=$("${ranks[@]}" -n 2 "$program" "$folder/killed")
echo "killed, resumed by two: $resumed"
[ "$whole" = "$resumed" ]
