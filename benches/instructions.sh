#!/usr/bin/env bash
# Instructions per packet-hop, counted by callgrind: the figure does not drift with the machine's mood.
# Two runs of different length are subtracted, so that set-up is not counted.
#
#   benches/instructions.sh            compare with benches/instructions.toml; fails when one takes over 5 % more
#   benches/instructions.sh --write    measure and write benches/instructions.toml
#   benches/instructions.sh --dev      print those of the development build (`make dev`, `make demo`) beside the release's
#   benches/instructions.sh --schemes  measure every scheme and write benches/schemes.md: takes some minutes
#
# What is counted is the extension module that users have, `make build`. Needs valgrind.
set -euo pipefail

cd "$(dirname "$0")/.."
figures=benches/instructions.toml
schemes=(ecmp letflow drill)
# Transports over ECMP with a symmetric hash, which those with credits need; TCP is there to be compared with.
transports=(tcp expresspass maxpass)
# Ports with several classes, of which one marks what leaves and trims what does not fit: specs of tests/fidelity, sprayed.
classes=(uec)
few=100
many=300
tolerance_percent=5

command -v valgrind >/dev/null || { echo "valgrind is not installed" >&2; exit 2; }
if [[ "${1:-}" == --dev ]]; then make --silent dev; else make --silent build; fi
hops=(.venv/bin/python benches/hops.py)
# Python then hashes and collects alike in both runs.
export PYTHONHASHSEED=0
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# Prints "instructions hops" of a run with $1 flows, and a scheme and keys of the spec as the other arguments say.
count() {
  local packet_hops instructions own
  own=$(mktemp -d -p "$scratch")
  packet_hops=$(valgrind --tool=callgrind --callgrind-out-file="$own/out" "${hops[@]}" "$@" 2>"$own/log") ||
    { cat "$own/log" >&2; return 1; }
  instructions=$(sed -n 's/^summary: \([0-9]*\).*/\1/p; s/^totals: \([0-9]*\).*/\1/p' "$own/out" | tail -n 1)
  echo "$instructions $packet_hops"
}

# Prints instructions per packet-hop of scheme, transport or spec $1, with one decimal place.
measure() {
  local few_counts many_counts run=("$1")
  [[ " ${transports[*]} " != *" $1 "* ]] || run=(ecmp "transport.name=$1" scheme.hash=symmetric)
  [[ " ${classes[*]} " != *" $1 "* ]] ||
    run=(oblivious "tests/fidelity/$1.toml" scheme.entropies=64 scheme.order=permutation)
  few_counts=$(count "$few" "${run[@]}") || return 1
  many_counts=$(count "$many" "${run[@]}") || return 1
  awk -v few="$few_counts" -v many="$many_counts" 'BEGIN {
    split(few, f, " "); split(many, m, " ")
    printf "%.1f\n", (m[1] - f[1]) / (m[2] - f[2])
  }'
}

# Measures all of these, as many at a time as there are cores. Prints "name figure" of each, in their order.
measure_all() {
  local name running=0
  for name in "$@"; do
    if ((running == $(nproc))); then
      wait -n
      running=$((running - 1))
    fi
    measure "$name" >"$scratch/$name" &
    running=$((running + 1))
  done
  while ((running > 0)); do
    wait -n
    running=$((running - 1))
  done
  for name in "$@"; do echo "$name $(<"$scratch/$name")"; done
}

if [[ "${1:-}" == --schemes ]]; then
  mapfile -t all < <("${hops[@]}" --schemes)
  measure_all "${all[@]}" >"$scratch/found"
  awk '$1 == "ecmp" { ecmp = $2 } { found[$1] = $2 } END {
    for (scheme in found) printf "| %s | %.0f | %.2f |\n", scheme, found[scheme], found[scheme] / ecmp
  }' "$scratch/found" | sort -t '|' -k 3n >"$scratch/rows"
  { echo "| scheme | instructions a packet-hop | of ECMP |"; echo "|---|---|---|"; cat "$scratch/rows"; } >benches/schemes.md
  cat benches/schemes.md
  exit 0
fi

if [[ "${1:-}" == --dev ]]; then
  echo "instructions a packet-hop: development build, release, ratio"
  measure_all "${schemes[@]}" "${transports[@]}" "${classes[@]}" | while read -r name found; do
    committed=$(sed -n "s/^$name = \([0-9.]*\)$/\1/p" "$figures")
    awk -v name="$name" -v found="$found" -v committed="$committed" \
      'BEGIN { printf "%-12s %6.1f %6.1f %5.2f\n", name, found, committed, found / committed }'
  done
  exit 0
fi

if [[ "${1:-}" == --write ]]; then
  {
    echo "# Instructions per packet-hop: 128 hosts, web search at load 0.6; schemes with DCTCP, transports with symmetric ECMP, uec sprayed."
    echo "# Written by benches/instructions.sh --write."
  } >"$scratch/figures"
  measure_all "${schemes[@]}" "${transports[@]}" "${classes[@]}" | sed 's/ / = /' >>"$scratch/figures"
  mv "$scratch/figures" "$figures"
  cat "$figures"
  exit 0
fi

[[ -f "$figures" ]] || { echo "$figures is missing: run $0 --write" >&2; exit 2; }
failed=0
measure_all "${schemes[@]}" "${transports[@]}" "${classes[@]}" >"$scratch/found"
while read -r name found; do
  committed=$(sed -n "s/^$name = \([0-9.]*\)$/\1/p" "$figures")
  [[ -n "$committed" ]] || { echo "$figures has no figure for $name" >&2; exit 2; }
  if awk -v found="$found" -v committed="$committed" -v tolerance="$tolerance_percent" \
    'BEGIN { exit !(found > committed * (1 + tolerance / 100)) }'; then
    echo "$name: $found instructions a packet-hop, over $committed by more than $tolerance_percent %"
    failed=1
  else
    echo "$name: $found instructions a packet-hop (committed: $committed)"
  fi
done <"$scratch/found"
exit "$failed"
