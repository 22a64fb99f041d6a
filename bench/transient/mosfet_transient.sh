#!/usr/bin/env bash
# Times a gate pulse with the schemes `beam` and `weno` of the kind mosfet at equal accuracy.
#
#   bench/transient/mosfet_transient.sh [BIN] [OUTPUT]   BIN: folder of mosfet_transient
#
#   DEVICE=cpu          cuda:0 moves `weno` to the GPU; `beam` has its transients on the CPU
#   SIZE=small          33 and 65 columns, one subband: some fifteen minutes on one core
#   THREADS=1           threads of the CPU
#   LIMIT_S=500         seconds after which the script stops with status 75; call it again, and it
#                       goes on with the runs that are left
#
# The error is that of the current into the drain in windows of 200 fs: the root mean square of its
# difference over that of the current. With SIZE=small the runs are compared with three references:
# the extrapolated limit of each scheme, and the mean of both limits. `weno` has two limits, of
# first and of second order. Otherwise a run of `beam` on a finer mesh is the reference. One JSON
# line a run has seconds for 1 ps without the start. A line of `weno` has its time over that of the
# fastest run of `beam` that is at least as accurate. Exit status: 0, all of these ratios are 5 or
# more with the mean of both limits; 1, not so.
exec python3 "$(dirname "$0")/mosfet_transient.py" "$@"
