# Shared by .ci/run and .ci/nightly: Debian packages, and stages that say how long they took.
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export PATH="$HOME/.cargo/bin:$PATH" CARGO_TERM_COLOR=never NO_COLOR=1
# A build that happens once needs no files for the next one.
export CARGO_INCREMENTAL=0

have() { command -v "$1" > /dev/null; }

# Installs Debian packages, if this is Debian and we may. A missing one is reported by the part that needs it.
install_packages() {
  (($#)) && have apt-get && [[ $EUID -eq 0 ]] || return 0
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" > /dev/null \
    || echo "could not install: $*" >&2
}

skipped=()
skip() {
  skipped+=("$1")
  echo "SKIPPED: $1" >&2
}

kept=$(mktemp -d)
leave() {
  rm -rf "$kept"
  kill $(jobs -p) 2> /dev/null || true
}
trap leave EXIT

stage() {
  local name=$1 began=$SECONDS code=0
  shift
  echo "== $name"
  "$@" || code=$?
  echo "== $name: $((SECONDS - began)) s"
  return "$code"
}

# `beside NAME COMMAND` starts a stage in the background; `joined NAME` waits for it and prints its output.
declare -A beside
beside() {
  local name=$1
  shift
  stage "$name" "$@" > "$kept/$name" 2>&1 &
  beside[$name]=$!
}
joined() {
  local code=0
  wait "${beside[$1]}" || code=$?
  cat "$kept/$1"
  return "$code"
}

# Fails if a test runner ran nothing, and counts: `count_tests FILE`, the output of the tests.
count_tests() {
  local rust python
  rust=$(sed -nE 's/^test result: .* ([0-9]+) passed.*/\1/p' "$1" | awk '{ sum += $1 } END { print sum + 0 }')
  python=$(sed -nE 's/(^|.* )([0-9]+) passed.* in .*/\2/p' "$1" | tail -n 1)
  echo "tests passed: $rust Rust, ${python:-0} Python"
  if ((rust == 0 || ${python:-0} == 0)); then
    echo "a test runner ran nothing" >&2
    exit 1
  fi
}

finish() {
  local part
  for part in "${skipped[@]}"; do echo "SKIPPED: $part"; done
  echo "all of $1 in $SECONDS s"
}
