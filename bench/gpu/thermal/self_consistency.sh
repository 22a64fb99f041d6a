#!/usr/bin/env bash
# Computes self-consistent phonons at three temperatures on the CPU and on a GPU. Prints for each
# crystal and mesh the seconds and iterations of both, the memory of the GPU, and the largest
# relative difference of their frequencies and of κ. It ends with 1 if a difference exceeds LIMIT.
#
#   bench/gpu/thermal/self_consistency.sh [BIN]
#
#   BIN                            folder of quasi-engine and quasi-make-deck (build/gpu/bin)
#
#   CASES="silicon:16 silicon:32 quartic-cubic:16 4h:8 6h:8 12h:6"
#                                  crystal and mesh of the displacements; 4h, 6h, 12h are polytypes
#                                  of silicon with 8, 12, 24 atoms
#   BUBBLE=F                       T adds the static bubble, and compares it too
#   NGRID=3 T=100,300,600          mesh of κ; temperatures
#   DEVICES="cpu cuda:0"           the first is what the second is compared with
#   LIMIT=1e-8 LIMIT_S=250         largest difference; seconds after which a job is given up
set -uo pipefail
cd "$(dirname "$0")/../../.." || exit 1
bin=${1:-build/gpu/bin} ngrid=${NGRID:-3} status=0
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
for case in ${CASES:-silicon:16 silicon:32 quartic-cubic:16 4h:8 6h:8 12h:6}; do
  name=${case%:*} n=${case#*:} deck=examples/thermal/${case%:*} summaries=()
  if [ ! -d "$deck" ]; then
    deck=$out/$name
    [ -d "$deck" ] || "$bin/quasi-make-deck" "silicon-$name-sw" "$deck" || exit 1
  fi
  for device in ${DEVICES:-cpu cuda:0}; do
    OPENBLAS_NUM_THREADS=1 timeout "${LIMIT_S:-250}" "$bin/quasi-engine" run thermal "$deck" \
      -d "$out/job" --device "$device" --quiet --json --set "ngrid=$ngrid,$ngrid,$ngrid" \
      --set "T=${T:-100,300,600}" --set four_phonon=F --set coherence=F --set renormalise=T \
      --set "renormalise_bubble=${BUBBLE:-F}" --set "renormalise_mesh=$n,$n,$n" \
      > "$out/$device.json" 2> "$out/log" ||
      { echo "$name $n³ on $device: $(tail -1 "$out/log")"; status=1; continue 2; }
    rm -rf "$out/job"
    summaries+=("$out/$device.json")
  done
  python3 - "$name" "$n" "${LIMIT:-1e-8}" "${summaries[@]}" <<'PY' || status=1
import json, os, sys

name, n, limit = sys.argv[1], sys.argv[2], float(sys.argv[3])
jobs = [json.load(open(path))["summary"] for path in sys.argv[4:]]

unlimited = 1e9  # on a coarse mesh rates can vanish, and rounding alone decides κ


def numbers(job):
    for step in job["ladder"]["temperatures"]:
        yield from step["lowest_omega_rad_ps"][1:] + step["highest_omega_at_gamma_rad_ps"][1:]
    for level in job["ladder"]["levels"]:
        yield from (min(kappa[i][i], unlimited) for kappa in level["kappa_w_per_mk"]
                    for i in range(3))


for path, job in zip(sys.argv[4:], jobs):
    steps = job["ladder"]["temperatures"]
    memory = max(step.get("memory_bytes", 0) for step in steps) / 2**20
    seconds = job["seconds"]
    bubble = f", bubble {seconds['bubble']:.2f} s" if "bubble" in seconds else ""
    print(f"{name} {n}³ on {os.path.basename(path)[:-5]}: {seconds['renormalise']:.2f} s{bubble}, "
          f"iterations {[step['iterations'] for step in steps]}, {memory:.0f} MiB")
noise = 1e-3  # the translations at Γ, whose ω is a root of rounding
pairs = [pair for job in jobs[1:] for pair in zip(numbers(jobs[0]), numbers(job))]
worst = max((abs(b - a) / abs(a) for a, b in pairs if abs(a) > noise), default=0.0)
print(f"  largest relative difference {worst:.1e}" + ("" if worst <= limit else f" > {limit}"))
sys.exit(worst > limit)
PY
done
exit $status
