#!/bin/bash
# Compares Σ of silicon atoms by pseudobands of several seeds with Σ of all bands, and counts the
# seeds whose 95 % interval holds the all-band value, for the valence top, the conduction bottom and
# the gap. Outer states are the two multiplets around the gap.
#
#   bench/gpu/gw/seeds.sh ENGINE
#
#   EDGE=3            cubic cells along each axis: 3 has 216 atoms, 4 has 512
#   CELLS=ideal       cells that are compared: ideal, disordered, or both in quotation marks
#   DISORDER=0.1      Bohr by which each atom of the disordered cell is displaced
#   ALL_BANDS=N       bands of the job without pseudobands, all by default
#   STATES=640        lowest states of the jobs with pseudobands
#   SEEDS=20          number of seeds
#   VECTORS=12, BLOCKS=4, PROTECTED=0.25   of the pseudobands, the last in Ry
#   SIGMA_FACTOR=1    vectors of Σ over those of χ
#   WAVES=11, CUTOFF=8   cut-offs of the states and of ε in Ry
#   GPUS=1            the job of all bands runs on all of them
#   JOBS_PER_GPU=1    seeds that run side by side on each GPU, or on the processor
#   STATE=DIR         finished jobs, gw_seeds beside ENGINE by default; they are not run again
#   LIMIT_S=540       seconds after which no job starts; the next call goes on
#   SIZE=small DEVICE=cpu   a small problem on the processor, to try the script
#
# Exit status: 0, the intervals hold the all-band value for nine of ten seeds, and not certainly for
# more than 99 %; 1, not so; 75, time ran out, call again.
exec python3 "$(dirname "$0")/seeds.py" "$@"
