#!/bin/bash
# Compares a job of silicon atoms with all bands and two jobs with pseudobands: seconds of every
# phase side by side, and Σ of the states around the gap beside the stated bars.
#
#   bench/gpu/gw/all_bands.sh ENGINE [JOB...]
#
#   JOB               operator, all or given; the first two by default
#     all             all bands by the dense solver
#     operator        pseudobands by polynomials of H, without a dense spectrum
#     given           pseudobands of the states of `all`, which have the dense solver's time too
#   EDGE=4            cubic cells along each axis: 4 has 512 atoms
#   ALL_BANDS=N       bands of `all` and `given`; by default all of them, 42,691 in 512 atoms
#   STATES=1500       lowest states of `operator`
#   VECTORS=24, BLOCKS=8, CUTOFF=4   of the pseudobands, and of ε in Ry
#   GPUS=2            number of GPUs
#   STATE=DIR         finished jobs, gw_all_bands beside ENGINE by default; they are not run again
#   LIMIT_S=540       seconds after which no job starts and the last one is ended; the next call
#                     goes on. A job that is ended prints its phases; its log is DIR/JOB.log
#   SIZE=small DEVICE=cpu   a small problem on the processor, to try the script
#
# Bands beyond ALL_BANDS are missing in `all` and `given`; the row `bands` bounds their CH.
# Exit status: 0, every difference lies within the bars; 1, not so; 75, a job is missing.
exec python3 "$(dirname "$0")/all_bands.py" "$@"
