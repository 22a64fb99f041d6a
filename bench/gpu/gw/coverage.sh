#!/bin/bash
# Counts how often the stated 95 % intervals of pseudobands hold the all-band value: 100 seeds of an
# ideal and of a disordered cell of 64 silicon atoms, for the valence top, the conduction bottom and
# the gap. Many small jobs run side by side on every GPU.
#
#   bench/gpu/gw/coverage.sh ENGINE
#
# The settings are those of seeds.sh, with these defaults: EDGE=2, CELLS="ideal disordered",
# SEEDS=100, VECTORS=8, BLOCKS=4, WAVES=7, CUTOFF=3, GPUS=4, JOBS_PER_GPU=4.
# Eight atoms on the processor: SIZE=small DEVICE=cpu SEEDS=100 bench/gpu/gw/coverage.sh ENGINE
export SCRIPT=coverage.sh CELLS=${CELLS:-ideal disordered} SEEDS=${SEEDS:-100}
if [ "$SIZE" = small ]; then
  export VECTORS=${VECTORS:-4}
else
  export EDGE=${EDGE:-2} WAVES=${WAVES:-7} CUTOFF=${CUTOFF:-3}
  export STATES=${STATES:-200} VECTORS=${VECTORS:-8} BLOCKS=${BLOCKS:-4}
  export GPUS=${GPUS:-4} JOBS_PER_GPU=${JOBS_PER_GPU:-4}
fi
exec python3 "$(dirname "$0")/seeds.py" "$@"
