#!/usr/bin/env bash
# Builds the numerics on a machine with a GPU, runs every test and one example of each kind there,
# and ends with one line: passed, failed, skipped, to do, commit, device.
#
#   bench/gpu/all.sh                build, all tests, all examples
#   bench/gpu/all.sh build          configures and builds
#   bench/gpu/all.sh test N/M       the N-th of M shares of the tests
#   bench/gpu/all.sh examples       one example of each kind on the CPU and on the GPU
#   bench/gpu/all.sh status         the line of what was done so far
#
#   LIMIT_S=480      seconds after which a stage stops; the same call then goes on where it stopped
#   TEST_JOBS=4      tests at once
#   CMAKE_EXTRA      further arguments for cmake, e.g. -DCMAKE_PREFIX_PATH=…
#   BUILD=build/gpu  the build folder, which also holds the results
#   COMMIT           what the line calls the source where there is no git
#
# Results belong to the sources they were made from: a changed source file starts them anew.
#
# Exit status: 0, the stage is complete and nothing failed (without a stage and for `status`: all
# stages are); 1, something failed; 75, time ran out or stages are missing, call again; 64, usage.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
folder=${BUILD:-build/gpu}
limit_s=${LIMIT_S:-480}
deadline=$((SECONDS + limit_s))
export QUASI_REQUIRE_DEVICE=cuda OMP_NUM_THREADS=${OMP_NUM_THREADS:-4} OPENBLAS_NUM_THREADS=1

usage() { sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "$0" >&2; exit 64; }
digest() {
  find CMakeLists.txt workers tests bench examples -type f -print0 | LC_ALL=C sort -z |
    xargs -0 sha256sum | sha256sum | cut -c1-12
}
state=$folder/results/$(digest)
mkdir -p "$state" || exit 1
time_left() { local left=$((deadline - SECONDS)); echo $((left > 1 ? left : 1)); }

commit() {
  if git rev-parse --short HEAD >/dev/null 2>&1; then
    git rev-parse --short HEAD | tr -d '\n'
    [ -z "$(git status --porcelain -uno)" ] || printf ' (changed)'
  else
    printf '%s' "${COMMIT:-sources ${state##*/}}"
  fi
}

build() {
  if ! timeout "$(time_left)" cmake -S . -B "$folder" -G Ninja -DCMAKE_BUILD_TYPE=Release \
    -DQUASI_SERVICE=OFF -DQUASI_CUDA=ON ${CMAKE_EXTRA:-} > "$folder/configure.log" 2>&1; then
    tail -15 "$folder/configure.log"
    return 1
  fi
  timeout "$(time_left)" cmake --build "$folder" -- -k 0 > "$folder/build.log" 2>&1
  local status=$?
  if [ $status -eq 0 ]; then
    touch "$state/built"
  elif [ $status -eq 124 ]; then
    echo "build: stopped after $limit_s s at $(grep -oE '^\[[0-9]+/[0-9]+\]' "$folder/build.log" |
      tail -1)"
    return 75
  else
    grep -E 'FAILED|error|undefined reference' "$folder/build.log" | head -20
    return 1
  fi
}

# Every test as "number name", the nightly ones left out.
list_tests() {
  ctest --test-dir "$folder" -N -LE nightly 2>/dev/null |
    sed -nE 's/^ *Test +#([0-9]+): (.*[^ ]) *$/\1 \2/p'
}

# ctest's lines of finished tests as "name|passed", "name|failed" or "name|skipped".
finished_tests() {
  sed -nE \
    -e 's/^ *[0-9]+\/[0-9]+ Test +#[0-9]+: (.*[^ .]) *\.*.*\*\*\*Skipped.*$/\1|skipped/p;t' \
    -e 's/^ *[0-9]+\/[0-9]+ Test +#[0-9]+: (.*[^ .]) *\.+ +Passed .*$/\1|passed/p;t' \
    -e 's/^ *[0-9]+\/[0-9]+ Test +#[0-9]+: (.*[^ .]) *\.*.*\*\*\*.*$/\1|failed/p'
}

run_tests() {  # N M
  if [ ! -e "$state/built" ]; then
    echo "test: nothing is built from these sources; first: bench/gpu/all.sh build"
    return 75
  fi
  list_tests > "$state/tests"
  [ -s "$state/tests" ] || { echo "test: ctest lists no test"; return 1; }
  touch "$state/done"
  local numbers
  # What failed before is run again.
  numbers=$(awk -v n="$1" -v m="$2" -F'|' 'FILENAME ~ /done$/ {done[$1] = $2 != "failed"; next}
    {number = $0; sub(/ .*/, "", number); name = $0; sub(/^[0-9]+ /, "", name)}
    FNR % m == n % m && !done[name] {printf ",%s", number}' "$state/done" "$state/tests")
  [ -n "$numbers" ] || return 0
  timeout "$(time_left)" ctest --test-dir "$folder" -I "0,0,0$numbers" -j "${TEST_JOBS:-4}" \
    --output-on-failure > "$state/ctest.log" 2>&1
  local status=$?
  finished_tests < "$state/ctest.log" > "$state/new"
  cat "$state/new" >> "$state/done"
  if grep -q '|failed$' "$state/new"; then
    sed -n 's/|failed$//p' "$state/new" | sed 's/^/failed: /'
    cp "$state/ctest.log" "$state/failed-$1-of-$2.log"
    echo "log: $state/failed-$1-of-$2.log"
    return 1
  fi
  [ $status -eq 124 ] && { echo "test $1/$2: stopped after $limit_s s"; return 75; }
  # Nothing failed, and yet ctest is not content: a test vanished or could not be started.
  [ $status -eq 0 ] || { tail -5 "$state/ctest.log"; return 1; }
}

run_examples() {
  if [ ! -x "$folder/bin/quasi-engine" ]; then
    echo "examples: quasi-engine is not built; first: bench/gpu/all.sh build"
    return 75
  fi
  local kind deck device name failed=0
  for kind in thermal gw mosfet; do
    case $kind in
      thermal) deck=examples/thermal/silicon ;;
      gw) deck=examples/gw/silicon-epm.toml ;;
      mosfet) deck=examples/mosfet/equilibrium.toml ;;
    esac
    for device in cpu cuda:0; do
      name="example $kind on $device"
      grep -q "^$name|passed$" "$state/examples" 2>/dev/null && continue
      [ "$(time_left)" -gt 1 ] || { echo "examples: stopped after $limit_s s"; return 75; }
      local out=$folder/out-$kind-${device%%:*}
      rm -rf "$out"
      if timeout "$(time_left)" "$folder/bin/quasi-engine" run "$kind" "$deck" -d "$out" \
        --device "$device" > "$state/example.log" 2>&1 && [ -s "$out/summary.json" ]; then
        echo "$name|passed" >> "$state/examples"
      else
        echo "$name|failed" >> "$state/examples"
        echo "failed: $name"
        tail -5 "$state/example.log"
        failed=1
      fi
    done
  done
  return $failed
}

# Prints the line; 0 only if every stage is complete and nothing failed.
report() {
  local counts device
  touch "$state/tests" "$state/done" "$state/examples"
  counts=$(awk -F'|' '{last[$1] = $2} END {for (name in last) ++n[last[name]]
    printf "%d %d %d", n["passed"], n["failed"], n["skipped"]}' "$state/done" "$state/examples")
  read -r passed failed skipped <<< "$counts"
  local examples=6 tests
  tests=$(wc -l < "$state/tests")
  to_do=$((tests + examples - passed - failed - skipped))
  device=$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | sort | uniq -c |
    sed -E 's/^ *([0-9]+) /\1 × /' | paste -sd, -)
  local built="not built"
  [ -e "$state/built" ] && built="built"
  echo "passed $passed, failed $failed, skipped $skipped, to do $to_do;" \
    "$built, commit $(commit), ${device:-no GPU}"
  [ "$failed" -eq 0 ] || return 1
  [ "$built" = built ] && [ "$tests" -gt 0 ] && [ "$to_do" -eq 0 ] || return 75
}

status=0
case ${1:-all} in
  build) build || status=$? ;;
  test)
    [[ ${2:-} =~ ^([0-9]+)/([0-9]+)$ ]] || usage
    n=${BASH_REMATCH[1]} m=${BASH_REMATCH[2]}
    [ "$n" -ge 1 ] && [ "$n" -le "$m" ] || usage
    run_tests "$n" "$m" || status=$?
    ;;
  examples) run_examples || status=$? ;;
  status) ;;
  all)
    [ -n "${LIMIT_S:-}" ] || deadline=$((SECONDS + 86400))
    build && run_tests 1 1 && run_examples || status=$?
    ;;
  *) usage ;;
esac
report
overall=$?
case ${1:-all} in all | status) [ $status -ne 0 ] || status=$overall ;; esac
# A failure of an earlier stage is not forgotten.
[ $overall -ne 1 ] || status=1
exit $status
