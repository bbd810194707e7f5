#!/bin/sh
# Layers of a model on three tasks of a cluster, each a process: tests/mpi/tasks.sh MPI MPIRUN PROGRAM. All have the weights of one.
set -eu
mpirun=$2
[ "$1" = openmpi ] && mpirun="$mpirun --oversubscribe"
alone=$($mpirun -n 1 "$3" tasks | sed -n 's/^rank 0 of 1: //p')
three=$($mpirun -n 3 "$3" tasks)
printf '%s\n%s\n' "$alone" "$three"
[ -n "$alone" ] && [ "$(printf '%s\n' "$three" | grep -c ": $alone\$")" = 3 ]
