#!/usr/bin/env bash
# Packet-hops per CPU-second of Weft beside those of htsim, by turns: DCTCP, ECMP by flow, the same pairs of hosts and bytes.
#
#   git clone https://github.com/Broadcom/csg-htsim && git -C csg-htsim checkout 841d9e7
#   make -C csg-htsim/sim libhtsim.a
#   benches/htsim/compare.sh csg-htsim [TURNS]
#
# Needs `make build` before it, g++, and cores that nobody else uses. Every host sends to another rack, and in the fat-tree to
# another pod. Links have 10 Gbit/s and 1 us, queues 250 packets of 1,500 bytes, and mark from 15 on, as htsim's do.
set -euo pipefail

[[ $# -ge 1 ]] || { sed -n '2,9s/^# \{0,1\}//p' "$0" >&2; exit 2; }
htsim=$(cd "$1/sim" && pwd)
turns=${2:-5}
cd "$(dirname "$0")"
weft=../../.venv/bin/weft
[[ -x "$weft" ]] || { echo "$weft is missing: make build" >&2; exit 2; }
[[ -f "$htsim/libhtsim.a" ]] || { echo "$htsim/libhtsim.a is missing: make -C $htsim libhtsim.a" >&2; exit 2; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# htsim's own headers and fat-tree; -O2, as its makefiles have it.
sources=("$PWD/dctcp.cpp" fat_tree_topology.cpp fat_tree_switch.cpp connection_matrix.cpp firstfit.cpp)
(cd "$htsim/datacenter" && g++ -std=c++11 -O2 -I.. -I. "${sources[@]}" ../libhtsim.a -o "$scratch/dctcp")

# A tier of htsim's topology: number, ports down, and for all but the highest ports up and how many times more go down.
tier() {
  printf 'Tier %s\nDownlink_speed_Gbps 10\nRadix_Down %s\nDownlink_Latency_ns 1000\nSwitch_Latency_ns 0\n' "$1" "$2"
  [[ $# -lt 4 ]] || printf 'Radix_Up %s\nOversubscribed %s\n' "$3" "$4"
}

# The flows of $1 hosts in racks or pods of $2, of $3 bytes each, for both: host n of a rack sends to host n of another.
flows() {
  awk -v hosts="$1" -v size="$2" -v bytes="$3" -v matrix="$scratch/matrix" -v trace="$scratch/trace.csv" 'BEGIN {
    print "Nodes " hosts "\nConnections " hosts > matrix
    print "start_us,src,dst,size_bytes" > trace
    for (src = 0; src < hosts; src++) {
      # Another place for each host of a rack, so that pairs of racks share no more than they must.
      dst = (src + size * (1 + src % (hosts / size - 1))) % hosts
      print src "->" dst " start 0 size " bytes > matrix
      print "0," src "," dst "," bytes > trace
    }
  }'
}

# Runs what stands in $scratch by turns. $1: a name; $2: the fabric of Weft's spec.
compare() {
  printf '[run]\nseed = 1\nthreads = 1\n[fabric]\n%s\n' "$2" >"$scratch/spec.toml"
  cat >>"$scratch/spec.toml" <<'SPEC'
switch_queue = { buffer = "250packets", mark = "15packets" }
host_queue = { mark = "15packets" }
[traffic]
trace = "trace.csv"
[transport]
name = "dctcp"
[scheme]
name = "ecmp"
SPEC
  : >"$scratch/found"
  for ((turn = 0; turn < turns; turn++)); do
    "$scratch/dctcp" "$scratch/topology" "$scratch/matrix" >"$scratch/htsim"
    "$weft" run "$scratch/spec.toml" --out "$scratch/out" --force >"$scratch/log" 2>&1 || { cat "$scratch/log" >&2; return 1; }
    ../../.venv/bin/python - "$scratch" <<'READ' >>"$scratch/found"
import json, pathlib, sys

scratch = pathlib.Path(sys.argv[1])
hops, cpu_s = map(float, (scratch / "htsim").read_text().split())
summary = json.loads((scratch / "out/summary.json").read_text())
print(hops, hops / cpu_s, summary["packet_hops"], summary["packet_hops_per_cpu_s"])
READ
  done
  awk -v name="$1" '{ print $4 / $2, $0 }' "$scratch/found" | sort -n | awk -v name="$1" '{ row[NR] = $0 } END {
    split(row[1], least); split(row[NR], most); split(row[int((NR + 1) / 2)], middle)
    printf "%s: htsim %.2f M packet-hops, %.2f M/CPU-s; Weft %.2f M, %.2f M/CPU-s; ratio %.1f (%.1f to %.1f in %d turns)\n",
      name, middle[2] / 1e6, middle[3] / 1e6, middle[4] / 1e6, middle[5] / 1e6, middle[1], least[1], most[1], NR
  }'
}

{ printf 'Nodes 128\nTiers 2\nPodsize 128\n'; tier 0 16 8 2; tier 1 8; } >"$scratch/topology"
flows 128 16 10000000
compare "leaf-spine, 8 leaves of 16 hosts, 8 spines, 10 MB" $'kind = "leaf-spine"\nleaves = 8\nspines = 8\nhosts_per_leaf = 16'

{ printf 'Nodes 1024\nTiers 3\nPodsize 64\n'; tier 0 8 8 1; tier 1 8 8 1; tier 2 16; } >"$scratch/topology"
flows 1024 64 600000
compare "fat-tree, 16 pods, 1,024 hosts, 0.6 MB" $'kind = "fat-tree"\nk = 16'
