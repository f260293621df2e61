#!/usr/bin/env bash
# Builds .venv from uv.lock with nothing presumed but python3.11+; says in one sentence what is missing.
set -euo pipefail
cd "$(dirname "$0")"

say() { printf '\033[2m[bootstrap]\033[0m %s\n' "$*" >&2; }
die() { printf '[bootstrap] %s\n' "$*" >&2; exit 1; }

find_python() {
  for candidate in ${PYTHON:-} python3 python3.13 python3.12 python3.11; do
    if command -v "$candidate" >/dev/null 2>&1 &&
      "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      command -v "$candidate"
      return
    fi
  done
  die "Python 3.11 or newer was not found. Install it (Debian: apt-get install python3 python3-venv), or name it: make PYTHON=/path/to/python3"
}

make_venv() {
  "$1" -m venv "$2" >/dev/null 2>&1 && return
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    say "python3-venv is missing; installing it"
    { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y python3-venv; } >/dev/null 2>&1 || true
    rm -rf "$2"
    "$1" -m venv "$2" && return
  fi
  die "Python cannot make virtual environments here. As root: apt-get install python3-venv"
}

python=$(find_python)
boot=.cache/bootstrap
if ! "$boot/bin/uv" --version >/dev/null 2>&1; then
  say "fetching uv"
  rm -rf "$boot"
  mkdir -p .cache
  make_venv "$python" "$boot"
  "$boot/bin/pip" install --quiet --disable-pip-version-check "uv==0.13.7" || die "uv could not be installed from the package index"
fi
say "syncing .venv with uv.lock"
UV_PYTHON_DOWNLOADS=never UV_PROJECT_ENVIRONMENT=.venv "$boot/bin/uv" sync --quiet --frozen --python "$python" --all-extras "$@"
.venv/bin/python -m tools.generate >/dev/null
touch .venv/.synced
