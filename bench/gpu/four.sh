#!/usr/bin/env bash
# Measures how far one job scales over the GPUs of a host, up to four, and whether every number of
# its result is equal on one, two and four. Prints one table of seconds, ratios and goals.
#
#   bench/gpu/four.sh                   every stage that is not measured yet, then the table
#   bench/gpu/four.sh STAGE...          only these stages; `list` names them
#   bench/gpu/four.sh table             the table of what was measured
#
#   BIN=build/gpu/bin    folder of quasi-engine
#   COUNTS="1 2 4"       numbers of GPUs to use; counts above those of the host are left out
#   ROUNDS=2             runs of each row, 1 of those of 1,000 atoms; the best counts, and bits are
#                        compared in all of them
#   GWPT_BANDS=2000, GWPT_SCREENED_RY=8, GWPT_BAND_MIN=126  bands, cut-off of W and first outer
#                        band of the 192 perturbations; 118 makes 17 outer states of nine
#   BLOCKS=8, VECTORS=24, SCREENED_RY=8  pseudobands and cut-off of ε for 1,000 atoms
#   STATE=FILE           measurements, extended by each call (four.jsonl beside BIN). A call goes on
#                        where the last one stopped.
#   LIMIT_S=500          seconds after which the script stops with status 75; call it again
#   SIZE=small DEVICE=cpu  small problems on one CPU, to try the script
#
# Exit status: 0, all stages are measured, all digests are equal and all goals are reached; 1,
# not so; 75, time ran out or rows are missing; 64, usage.
exec python3 "$(dirname "$0")/four.py" "$@"
