#!/usr/bin/env bash
# Runs the service on a machine with GPUs. The worker finds the GPUs through NVML and makes each a
# slot. One example of each kind is submitted, all at once, and runs on one GPU.
#
#   bench/gpu/service.sh [BIN]     BIN: folder of the programs (build/release/bin)
set -euo pipefail
cd "$(dirname "$0")/../.."
bin=$(cd "${1:-build/release/bin}" && pwd)
home=$(mktemp -d)
server=unix:$home/server.sock
started=()
stop() { kill -TERM "${started[@]}" 2>/dev/null || true; wait 2>/dev/null || true; rm -rf "$home"; }
trap stop EXIT
export QUASI_STATE_DIR=$home/client
"$bin/quasi-server" --data-directory "$home/server" --listen "$server" >"$home/server.log" 2>&1 &
started+=($!)
"$bin/quasi-worker" --server "$server" --state-directory "$home/worker" >"$home/worker.log" 2>&1 &
started+=($!)
quasi() { "$bin/quasi" --server "$server" "$@"; }
for _ in $(seq 100); do
  quasi devices --json 2>/dev/null | grep -q '"cuda:0"\|NVIDIA' && break
  sleep 0.1
done
quasi devices || { tail -n 20 "$home"/*.log; exit 1; }
jobs=()
for deck in "thermal examples/thermal/silicon" "gw examples/gw/silicon-epm.toml" \
  "mosfet examples/mosfet/equilibrium.toml"; do
  # shellcheck disable=SC2086
  jobs+=("$(quasi submit $deck -o name)")
done
for job in "${jobs[@]}"; do
  quasi wait "$job" >/dev/null || { quasi show "$job"; quasi logs "$job" | tail -n 20; }
  quasi show "$job" | head -n 4
  quasi fetch "$job" -d "$home/$job" >/dev/null && grep -o '"device":[^,]*' \
    "$home/$job/summary.json"
done
tail -n 5 "$home/worker.log"
