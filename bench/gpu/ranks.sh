#!/bin/bash
# One job on two GPUs of a host: one process on one GPU, one process on both, two MPI ranks; 16³ four phonons and GW of
# 64 atoms. Prints seconds by phase and whether every number is the same to the last bit. About 75 s on two H100s.
# Usage: ranks.sh [BUILD_DIR]; needs mpirun, and a build with QUASI_MPI=ON and CUDA.
engine=${1:-build/gpu}/bin/quasi-engine
out=$(mktemp -d); trap 'rm -rf "$out"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_btl_vader_single_copy_mechanism=none NCCL_NVLS_ENABLE=0
export OMPI_MCA_plm=isolated OMPI_MCA_hwloc_base_binding_policy=none
mpi="mpirun --oversubscribe -n 2"
both=cuda:0,cuda:1

# report NAME: seconds by phase; the digest is of every number of the summary that is not a time or a name of where it ran.
report() {
  python3 - "$out/$1.json" "$1" <<'PY'
import hashlib, json, sys
d = json.load(open(sys.argv[1]))
def walk(x, path=""):
    if isinstance(x, dict):
        for k in sorted(x):
            if not any(w in k for w in ("second", "device", "rank", "memory")): yield from walk(x[k], path + "/" + k)
    elif isinstance(x, list):
        for i, v in enumerate(x): yield from walk(v, path + "/%d" % i)
    elif not isinstance(x, str): yield "%s=%r" % (path, x)
s = d["summary"].get("seconds") or d["summary"].get("provenance", {}).get("seconds", {})
print("%-14s wall %6.2f  bits %s  %s" % (sys.argv[2], d["wall_seconds"], hashlib.sha256("\n".join(walk(d["summary"])).encode()).hexdigest()[:12],
      {k: round(v, 3) for k, v in s.items() if v > 0.05}))
PY
}
# go NAME COMMAND…: runs it into a folder of its own.
go() {
  local name=$1; shift
  timeout 60 "$@" -d "$out/$name" --json --quiet > "$out/$name.json" 2> "$out/$name.log" && report "$name" || { echo "$name failed"; tail -4 "$out/$name.log"; }
}

nvidia-smi --query-gpu=name --format=csv,noheader | sort | uniq -c
thermal="run thermal examples/thermal/silicon --set four_phonon=.true. --set ngrid=16,16,16 --set scalebroad=${SB:-0.1} --set T=300"
go warm "$engine" $thermal --set ngrid=6,6,6 --device $both
go thermal-1 "$engine" $thermal --device cuda:0
go thermal-both "$engine" $thermal --device $both
go thermal-ranks $mpi "$engine" $thermal --device $both

atoms=64; occupied=$((2 * atoms))
cat > "$out/deck.toml" <<DECK
kind = "gw"
checkpoint_seconds = 1e6
[meanfield]
source = "epm"
cell = "cubic"
supercell = [2, 2, 2]
cutoff_ry = 11.0
bands = ${BANDS:-1600}
[epsilon]
cutoff_ry = 8.0
write = false
[sigma]
band_min = $((occupied - 3))
band_max = $((occupied + 4))
DECK
go gw-1 "$engine" run gw "$out/deck.toml" --device cuda:0
go gw-both "$engine" run gw "$out/deck.toml" --device $both
go gw-ranks $mpi "$engine" run gw "$out/deck.toml" --device $both
