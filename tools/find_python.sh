#!/bin/sh
# Prints the path of a Python that can build this book: 3.12, 3.13 or 3.14, with venv and pip.
#
# Each candidate is run, because a name on PATH proves little: a pyenv shim exits 127 when that
# version is not selected, and Debian's python3 may lack ensurepip. $PYTHON, when set, is tried
# alone. With no fit, one line on standard error says what was tried; the exit status is 1.
set -u

check='
import sys
import ensurepip, venv
sys.exit(0 if (3, 12) <= sys.version_info[:2] < (3, 15) else 1)
'

tried=""

try() {
    candidate=$(command -v "$1" 2>/dev/null) || return 1
    case $candidate in
        /*) ;;
        */*) candidate=$PWD/$candidate ;;
        *) return 1 ;;
    esac
    if "$candidate" -I -c "$check" >/dev/null 2>&1 </dev/null; then
        printf '%s\n' "$candidate"
        exit 0
    fi
    version=$("$candidate" -I -c 'import sys; print("is %d.%d.%d" % sys.version_info[:3])' 2>/dev/null </dev/null) \
        || version="does not run"
    tried="$tried${tried:+, }$1 ($version)"
    return 1
}

if [ -n "${PYTHON:-}" ]; then
    try "$PYTHON"
    echo "error: PYTHON=$PYTHON is no Python 3.12, 3.13 or 3.14 with the venv and ensurepip modules${tried:+: tried $tried}. Name another, or unset PYTHON to let make look for one." >&2
    exit 1
fi

for name in python3.13 python3.12 python3.14 python3 python; do
    try "$name"
done
# Versions that pyenv and uv keep where PATH does not show them.
for minor in 13 12 14; do
    for path in \
        "${PYENV_ROOT:-${HOME:-/nonexistent}/.pyenv}"/versions/3."$minor"*/bin/python3 \
        "${UV_PYTHON_INSTALL_DIR:-${HOME:-/nonexistent}/.local/share/uv/python}"/cpython-3."$minor".*/bin/python3 \
        /opt/homebrew/bin/python3."$minor" \
        /usr/local/bin/python3."$minor"; do
        [ -e "$path" ] && try "$path"
    done
done

echo "error: no Python 3.12, 3.13 or 3.14 found (tried: ${tried:-nothing on PATH runs}). Install one, for example 'sudo apt install python3.13 python3.13-venv', 'pyenv install 3.13' or 'brew install python@3.13', or name it: make book PYTHON=/path/to/python3.13" >&2
exit 1
