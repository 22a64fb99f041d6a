#!/usr/bin/env bash
# Times the four-phonon scattering step of silicon 16³ on 1, 2, 4, … GPUs of a host in one process.
# Prints the best of three runs after a small job that wakes the devices, and whether every number
# of the summary is equal. It takes about 30 s on four H200s.
#
#   bench/gpu/devices_4ph.sh [BIN]
#
#   BIN                  folder of quasi-engine (build/gpu/bin)
#   MESH, SB, COUNTS     16, 0.1, "1 2 4"
set -uo pipefail
cd "$(dirname "$0")/../.."
engine=${1:-build/gpu/bin}/quasi-engine
mesh=${MESH:-16}
out=$(mktemp -d); trap 'rm -rf "$out"' EXIT
go() {  # NAME DEVICES MESH
  timeout 60 "$engine" run thermal "${DECK:-examples/thermal/silicon}" -d "$out/$1" --device "$2" \
    --set ngrid="$3,$3,$3" --set scalebroad="${SB:-0.1}" \
    --set four_phonon=T --set convergence=F --set T=300 --json --quiet \
      > "$out/$1.json" 2> "$out/$1.log" || { tail -3 "$out/$1.log"; exit 1; }
}
for n in ${COUNTS:-1 2 4}; do
  devices=$(for ((i = 0; i < n; ++i)); do printf "%scuda:%d" "$([ $i -gt 0 ] && echo ,)" $i; done)
  go warm "$devices" 6
  for i in 1 2 3; do go "$n-$i" "$devices" "$mesh"; done
done
python3 - "$out" "${COUNTS:-1 2 4}" <<'PY'
import json, sys
first = {}
for n in sys.argv[2].split():
    runs = [json.load(open("%s/%s-%d.json" % (sys.argv[1], n, i)))["summary"] for i in (1, 2, 3)]
    best, seconds = min((r["seconds"]["scattering_4ph"], str({k: round(v, 3) for k, v in \
      r["seconds"].items()})) for r in runs)
    numbers = [{k: v for k, v in r.items() if k not in ("seconds", "device")} for r in runs]
    first = first or {"s": best, "numbers": numbers[0]}
    print("%s GPU(s): scattering_4ph %.3f s, %.2f times one; %s; %s" % (n, best, first["s"] / best,
          "same numbers" if all(x == first["numbers"] for x in numbers) else "OTHER NUMBERS", \
            seconds))
PY
