# shellcheck shell=bash
# For the scripts in tools/ and .ci/, which source it first: goes to the repository's root and defines what
# they share. Not a program.

script=$(readlink -f "$0")
root=$(dirname "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")")
cd "$root" || exit

# CI may run as another user than the one who owns the clone; git is to read it nevertheless.
export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0="$root"

die() {
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  exit 1
}

# The comment at the head of the running script, which is its manual.
usage() { sed -n '2,/^[^#]/ { s/^# \{0,1\}//p }' "$script"; }

usageError() {
  printf '%s: %s\n\n' "${0##*/}" "$*" >&2
  usage >&2
  exit 2
}

# Compilers to run at once: one per core, but no more than memory holds at about 1.5 GB each. Memory is what
# is available now, or less where a container limits it. CMake's CMAKE_BUILD_PARALLEL_LEVEL wins.
jobCount() {
  local kib limit fit
  kib=$(awk '/^MemAvailable:/ { print $2 }' /proc/meminfo)
  for limit in /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory/memory.limit_in_bytes; do
    limit=$(cat "$limit" 2>/dev/null || true)
    [[ $limit =~ ^[0-9]{1,15}$ ]] && ((limit / 1024 < kib)) && kib=$((limit / 1024))
  done
  fit=$((kib / 1500000))
  ((fit > $(nproc))) && fit=$(nproc)
  echo "${CMAKE_BUILD_PARALLEL_LEVEL:-$((fit > 1 ? fit : 1))}"
}

# configure PRESET [cmake arguments].
configure() {
  local preset=$1 options=()
  shift
  if command -v ccache >/dev/null; then
    options+=(-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
  fi
  cmake --preset "$preset" "${options[@]}" "$@"
}

# step NAME command...: announces and runs it. finish STATUS, for `trap 'finish $?' EXIT`: prints how long each
# step took and names the one that failed.
steps=()
step_name=''
step_started=0

step() {
  step_name=$1 step_started=$SECONDS
  shift
  printf '\n==> %s\n' "$step_name"
  "$@"
  steps+=("$(printf '%5d s  %s' $((SECONDS - step_started)) "$step_name")")
  step_name=''
}

finish() {
  local how="exit $1"
  (($1)) || how='interrupted'
  if [[ -n $step_name ]]; then
    steps+=("$(printf '%5d s  %s: FAILED' $((SECONDS - step_started)) "$step_name")")
  fi
  if ((${#steps[@]})); then
    printf '\n%s: time of each step\n' "${0##*/}"
    printf '%s\n' "${steps[@]}" "$(printf '%5d s  in all' "$SECONDS")"
  fi
  [[ -z $step_name ]] || printf '\n%s: FAILED in step "%s" (%s)\n' "${0##*/}" "$step_name" "$how" >&2
}
