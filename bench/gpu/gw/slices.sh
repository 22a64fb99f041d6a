#!/bin/bash
# Compares a GW job of silicon atoms by pseudobands whose matrices are cut into slices of G' with
# the job that holds them whole. Prints seconds, memory and bits of each job, and one row: the
# largest departure of Σ, and whether one and two devices have equal bits.
#
#   bench/gpu/gw/slices.sh ENGINE
#
#   EDGE=2            cubic cells along each axis: 2 has 64 atoms, 3 has 216
#   SLICES=8          number of slices (epsilon.column_slices)
#   STATES=180        lowest states
#   VECTORS=4         random vectors of each window of pseudobands
#   WAVES=11, CUTOFF=8   cut-offs of the states and of ε in Ry
#   STATE=DIR         finished jobs, gw_slices beside ENGINE by default; they are not run again
#   LIMIT_S=540       seconds after which no job starts; the next call goes on
#   DEVICE=cpu        processors in place of GPUs, to try the script
#
# 216 atoms: EDGE=3 STATES=640 bench/gpu/gw/slices.sh ENGINE
# Exit status: 0, Σ departs by less than 1e-11 of itself, and one and two devices have equal bits;
# 1, not so; 75, time ran out, call again.
exec python3 "$(dirname "$0")/slices.py" "$@"
