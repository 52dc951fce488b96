#!/usr/bin/env bash
# What an author of a scheme waits for: the CPU-seconds and seconds of a build after a changed comment in a scheme, and after a
# changed decision. Builds once before, so that only the change is measured. Leaves the file as it was.
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH="$HOME/.cargo/bin:$PATH" CARGO_TERM_COLOR=never

scheme=crates/balance/src/switch/letflow.rs
kept=$(mktemp)
cp "$scheme" "$kept"
trap 'cp "$kept" "$scheme"; rm -f "$kept"' EXIT

build() { cargo build --quiet --profile dev -p weft-python --locked; }

measure() {
  local TIMEFORMAT='%U %S %R' said user system real
  said=$({ time build; } 2>&1) || { echo "$said" >&2; exit 1; }
  read -r user system real <<< "$(tail -n 1 <<< "$said")"
  printf '%-20s %6.1f CPU-s %6.1f s\n' "$1" "$(awk "BEGIN { print $user + $system }")" "$real"
}

build
echo "// A comment." >> "$scheme"
measure "a changed comment"
sed -i 's/self\.decisions += 1;/self.decisions += 2;/' "$scheme"
cmp -s "$scheme" "$kept" && { echo "$scheme has no decision to change" >&2; exit 1; }
measure "a changed decision"
