#!/usr/bin/env bash
# Compares the schemes `weno` and `beam`: the current of one bias point with its mesh error, and the
# time to it. One JSON line a scheme and point. The first run takes the time on the mesh itself, the
# second one adds the meshes of --converge.
#
#   bench/mosfet_time_to_current.sh [BIN] [OUTPUT]   BIN: folder of quasi-engine
#
#   DEVICE=cuda:0             cpu takes an hour
#   POINTS="0.6,0.4 0.3,0.4"  V_GS,V_DS
#   NX=129                    columns of both schemes; the defaults of the deck elsewhere
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
bin=${1:-build/gpu/bin} output=${2:-build/time-to-current}
nx=${NX:-65}

# Prints the numbers of a finished point: scheme, seconds, columns of iv.csv.
line_of() {
  awk -F, -v scheme="$1" -v seconds="$2" -v study="$3" -v nx="$nx" 'NR > 1 {
    printf "{\"scheme\":\"%s\",\"nx\":%d,\"vgs_v\":%s,\"vds_v\":%s,\"current_a_per_m\":%s,", \
      scheme, nx, $1, $2, $3
    printf "\"ballistic_ratio\":%s,\"status\":\"%s\",\"seconds\":%s,\"%s\":true}\n", $10, $NF, \
      seconds, study }' "$4/iv.csv"
}

for point in ${POINTS:-0.6,0.4 0.3,0.4}; do
  for scheme in beam weno; do
    for study in point converge; do
      folder=$output/$scheme-$point-$study
      rm -rf "$folder" && mkdir -p "$folder"
      options=()
      [ "$study" = converge ] && options=(--converge)
      begin=$(date +%s.%N)
      timeout 500 "$bin/quasi-engine" run mosfet examples/mosfet/standard.toml \
        --device "${DEVICE:-cuda:0}" --quiet -d "$folder" --set "run.scheme=$scheme" \
        --set "bias.points=[[${point/,/, }]]" --set "mesh.nx=$nx" \
        "${options[@]}" > "$folder/table.txt" ||
        echo "FAILED: $folder"
      seconds=$(echo "$(date +%s.%N) - $begin" | bc)
      line_of "$scheme" "$seconds" "$study" "$folder"
      [ "$study" = converge ] && grep "mesh error" "$folder/table.txt"
    done
  done
done
exit 0
