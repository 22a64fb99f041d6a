#!/bin/bash
# Compares Σ of silicon atoms by pseudobands of several seeds with Σ of all bands, and counts the
# seeds whose 95 % interval holds the all-band value, for the valence top, the conduction bottom and
# the gap. Outer states are the two multiplets around the gap.
#
#   bench/gpu/gw/seeds.sh ENGINE
#
#   EDGE=3            cubic cells along each axis: 3 has 216 atoms, 4 has 512
#   ALL_BANDS=17941   bands of the job without pseudobands; 17,941 are all of 216 atoms at 11 Ry
#   STATES=640        lowest states of the jobs with pseudobands
#   SEEDS=20          number of seeds
#   VECTORS=12, BLOCKS=4, CUTOFF=8   of the pseudobands, and of ε in Ry
#   GPUS=1            each seed runs on one of them, and the job of all bands on all
#   STATE=DIR         finished jobs, gw_seeds beside ENGINE by default; they are not run again
#   LIMIT_S=540       seconds after which no job starts; the next call goes on
#   SIZE=small DEVICE=cpu   a small problem on the processor, to try the script
#
# Exit status: 0, the intervals hold the all-band value for nine of ten seeds; 1, not so; 75, time
# ran out, call again.
exec python3 "$(dirname "$0")/seeds.py" "$@"
