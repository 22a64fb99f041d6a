#!/bin/bash
# Computes κ of the shipped silicon at 300 K converged in mesh, with the error of the extrapolation.
# Isotopes are natural. Every process of three phonons (iterated) and of four is summed. It takes
# 200 s on an H200 for 24³ and the meshes 14 … 22 before it.
#
#   bench/gpu/silicon_converged.sh [BIN_DIR [MESH [MESHES]]]
b=${1:-build/gpu/bin}
n=${2:-20}
d=$(mktemp -d)
trap 'rm -rf "$d"' EXIT
for four in F T; do
  OPENBLAS_NUM_THREADS=1 "$b/quasi-engine" run thermal examples/thermal/silicon \
    --converge -d "$d/$four" --device cuda:0 --quiet \
    --set ngrid="$n,$n,$n" --set study_meshes="${3:-12,14,16,18}" --set T=300 --set coherence=F \
      --set four_phonon=$four | grep -vE "^(mesh|  +T)"
done
