#!/bin/bash
# Reads a WFN that exceeds the memory for states, in pieces: writes a synthetic WFN of plane waves,
# runs a job with pseudobands of its states, kills a second job while it reads, and resumes it.
#
#   bench/gpu/gw/large_wfn.sh ENGINE
#
#   GB=2              size of WFN; the job writes a file of its states of the same size
#   MEMORY_MIB=1024   memory for states (meanfield.state_memory_mib)
#   BUDGET_MIB=256    memory for blocks of work (memory_budget_mib)
#   DEVICE=cpu        device of the jobs
#   FOLDER=DIR        place of all files, large_wfn beside ENGINE by default; removed at the end
#
# It prints the rate of reading, peak memory beside the plan, what the resumed job read, and whether
# the numbers of both jobs are equal. Exit status: 0, they are, and the peak exceeds the memory for
# states by less than 512 MiB; 1, not so.
exec python3 "$(dirname "$0")/large_wfn.py" "$@"
