#!/bin/bash
# Runs one job on two GPUs of a host in three ways: one process on one GPU, one process on both, and
# two MPI ranks. The jobs are 16³ four phonons and GW of 64 atoms. Prints seconds by phase and
# whether every number has the same bits. It takes about 75 s on two H100s, and needs mpirun and a
# build with QUASI_MPI=ON and CUDA.
#
#   bench/gpu/ranks.sh [BUILD_DIR]
engine=${1:-build/gpu}/bin/quasi-engine
out=$(mktemp -d); trap 'rm -rf "$out"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
  OMPI_MCA_btl_vader_single_copy_mechanism=none NCCL_NVLS_ENABLE=0
export OMPI_MCA_plm=isolated OMPI_MCA_hwloc_base_binding_policy=none
mpi="mpirun --oversubscribe -n 2"
both=cuda:0,cuda:1

source "$(dirname "$0")/gw_deck.sh"
# go NAME COMMAND…: runs it into a folder of its own.
go() {
  local name=$1; shift
  timeout 60 "$@" -d "$out/$name" --json --quiet > "$out/$name.json" 2> "$out/$name.log" \
    && gw_phases "$out/$name.json" "$name" || { echo "$name failed"; tail -4 "$out/$name.log"; }
}

nvidia-smi --query-gpu=name --format=csv,noheader | sort | uniq -c
thermal="run thermal examples/thermal/silicon --set four_phonon=.true. --set ngrid=16,16,16"
thermal+=" --set scalebroad=${SB:-0.1} --set T=300"
go warm "$engine" $thermal --set ngrid=6,6,6 --device $both
go thermal-1 "$engine" $thermal --device cuda:0
go thermal-both "$engine" $thermal --device $both
go thermal-ranks $mpi "$engine" $thermal --device $both

gw_deck "$out/deck.toml" 2,2,2 "${BANDS:-1600}"
go gw-1 "$engine" run gw "$out/deck.toml" --device cuda:0
go gw-both "$engine" run gw "$out/deck.toml" --device $both
go gw-ranks $mpi "$engine" run gw "$out/deck.toml" --device $both
