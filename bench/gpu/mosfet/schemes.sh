#!/usr/bin/env bash
# Extrapolates the current of the schemes `beam` and `weno` at V_GS = 0.6 V, V_DS = 0.4 V, with an
# error bar each, and compares them. Each axis of the mesh is refined by itself.
#
#   bench/gpu/mosfet/schemes.sh [BIN] [OUTPUT]   BIN: folder of quasi-engine
#
#   DEVICE=cuda:0       cpu takes hours
#   ONLY=beam           one scheme; the exit status is then 0
#   SIZE=small          tiny meshes, to try the script
#   LIMIT_S=500         seconds after which the script stops with status 75; call it again, and it
#                       goes on where the last call stopped
#
# Exit status: 0, the extrapolated currents agree within 2 % and each bar is below 2 %; 1, not so.
exec python3 "$(dirname "$0")/schemes.py" "$@"
