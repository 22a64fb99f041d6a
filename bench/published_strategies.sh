#!/usr/bin/env bash
# Prints the comparison of the FourPhonon_GPU publication for three and four phonons as one table.
# It holds the seconds of finding and of evaluation of each strategy, both together, and the ratio
# to the factorised sums.
#
#   bench/published_strategies.sh BIN [DEVICE]
#
#   BIN                  folder of thermal_3ph_bench and thermal_4ph_bench
#   DECK                 examples/thermal/silicon
#   MESHES_3PH, MESHES_4PH   "8 12", "4 6"
set -uo pipefail
cd "$(dirname "$0")/.."
bin=${1:?folder of the benchmarks} device=${2:-cpu} deck=${DECK:-examples/thermal/silicon}
{
  for n in ${MESHES_3PH:-8 12}; do
    for strategy in factorised list-host list-device mode-by-mode test-and-sum; do
      "$bin/thermal_3ph_bench" "$deck" "$device" 2 ngrid="$n $n $n" isotopes=F convergence=F \
        strategy=$strategy | tail -n 1 | sed "s/^{/{\"strategy\":\"$strategy\",/" || exit 1
    done
  done
  for n in ${MESHES_4PH:-4 6}; do
    "$bin/thermal_4ph_bench" "$deck" --mesh "$n" --sb 0.1 --compat --device "$device" \
      --strategies all || exit 1
  done
} | python3 -c '
import json, sys
print("| phonons | mesh | processes | strategy | finding (s) | evaluation (s) | both (s) "
      "| times the factorised |\n| --- | --- | --- | --- | --- | --- | --- | --- |")
processes = factorised = 0
def row(phonons, mesh, name, find, evaluate, both):
    print("| %d | %d³ | %.3g | %s | %s | %s | %.3g | %.1f |" % (phonons, mesh, processes, name, \
      find, evaluate, both, both / factorised))
for line in sys.stdin:
    d = json.loads(line)
    if d["case"] == "thermal_3ph":
        both, processes = d["seconds_scattering_median"], d["processes"]
        if d["strategy"] == "factorised": factorised = both
        row(3, d["mesh"][0], d["strategy"], "%.3g" % d["seconds_enumerate"], "%.3g" % \
          d["seconds_evaluate"], both)
    elif d["case"] == "strategy":
        row(4, d["mesh"], d["name"], "%.3g" % d["enumerate_s"], "%.3g" % d["evaluate_s"], \
          d["whole_s"])
    else:
        processes, factorised = sum(d["processes"]), d["scattering_s"]
        row(4, d["mesh"], "factorised", "", "", factorised)
'
