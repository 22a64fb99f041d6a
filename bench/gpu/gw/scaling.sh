#!/bin/bash
# Measures how GW jobs of silicon with pseudobands and error bars grow with the number of atoms, on
# one and more GPUs: seconds of every phase, fitted exponents, memory beside the plan, and bits.
#
#   bench/gpu/gw/scaling.sh ENGINE              every job that is not measured yet, then the table
#   bench/gpu/gw/scaling.sh ENGINE table        the table of what was measured
#   bench/gpu/gw/scaling.sh ENGINE figure FILE  the figure, for which matplotlib is needed
#
#   EDGES="2 3 4 5"   cubic cells along each axis: 64, 216, 512 and 1,000 atoms
#   COUNTS="1 2"      numbers of GPUs
#   VECTORS=24, BLOCKS=8, CUTOFF=4   of the pseudobands, and of ε in Ry
#   STATE=DIR         finished jobs, gw_scaling beside ENGINE by default; they are not run again
#   LIMIT_S=540       seconds after which no job starts; the next call goes on
#   SIZE=small DEVICE=cpu   small problems on the processor, to try the script
#
# Exit status: 0, all jobs are measured and bits are equal on every number of GPUs; 1, bits differ;
# 75, a job is missing.
exec python3 "$(dirname "$0")/scaling.py" "$@"
