# Set-up steps, sourced by ./run. Each step leaves a stamp with a hash of all that it depends on, so that a step whose
# inputs are as before costs milliseconds and needs neither the network nor root. Needs: ROOT.
# The steps say `|| return` themselves, because bash ignores `set -e` inside a condition (setup_peer calls them in one).

readonly VENV="$ROOT/.venv"
readonly PEER_VENV="$ROOT/.venv-peer"

readonly APT_BUILD=(g++ pkg-config libhwy-dev libdeflate-dev rapidjson-dev libcli11-dev libre2-dev libxlsxwriter-dev)
readonly APT_TEST=(libgtest-dev libgmock-dev valgrind)
readonly APT_BENCH=(libbenchmark-dev)
readonly APT_LINT=(clang-format clang-tidy)

export PATH="$VENV/bin:$PATH" # cmake, ninja and python are those of the virtual environment
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1 PIP_ROOT_USER_ACTION=ignore
if command -v ccache >/dev/null; then
  export CMAKE_CXX_COMPILER_LAUNCHER=ccache
fi

say() { echo "== $*"; }

fail() {
  echo "./run: $*" >&2
  exit 1
}

# is_current STAMP KEY: whether the step that wrote STAMP saw the same KEY.
is_current() { [[ -f "$1" && "$(<"$1")" == "$2" ]]; }

# Runs "$@" while no other ./run sets up the same checkout.
locked() {
  mkdir -p "$ROOT/build"
  (
    flock 9
    "$@"
  ) 9>"$ROOT/build/.setup.lock"
}

# ---- apt ------------------------------------------------------------------------------------------------------------

# setup_apt PACKAGE...: installs those that are missing.
setup_apt() {
  if ! command -v dpkg-query >/dev/null; then
    return 0 # not Debian: CMake names what it does not find
  fi
  local package missing=()
  for package in "$@"; do
    [[ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" == installed ]] || missing+=("$package")
  done
  ((${#missing[@]})) || return 0

  local as_root=()
  if ((EUID != 0)); then
    command -v sudo >/dev/null || fail "as root, run first: apt-get update && apt-get install ${missing[*]}"
    as_root=(sudo)
  fi
  say "apt: ${missing[*]}"
  as_root+=(env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300)
  "${as_root[@]}" update </dev/null &&
    "${as_root[@]}" install --yes --no-install-recommends "${missing[@]}" </dev/null
}

# ---- Python ---------------------------------------------------------------------------------------------------------

# Prints the path of the Python to build on: MSPROBE_PYTHON, else the first of the right version. 3.10 is the oldest
# with a PyTorch 2.13, 3.12 the newest with a NumPy 1.
find_python() {
  local candidate program
  program='import os, sys
if not (3, 10) <= sys.version_info[:2] <= (3, 12): sys.exit(1)
print(os.path.realpath(sys.executable))'
  for candidate in "${MSPROBE_PYTHON:-}" "$(PATH=${PATH#"$VENV/bin:"} && command -v python3)" /usr/bin/python3; do
    [[ -n "$candidate" ]] && "$candidate" -c "$program" 2>/dev/null && return 0
  done
  fail "needs Python 3.10 to 3.12 (set MSPROBE_PYTHON=/path/to/python)"
}

# create_venv FOLDER: an empty virtual environment, unless FOLDER is a complete one of this checkout and Python.
create_venv() {
  local folder=$1 python key
  python=$(find_python) || return
  key="$folder $python $("$python" -V)"
  is_current "$folder/.stamp-created" "$key" && return 0

  local has_venv='import ensurepip, venv'
  local has_headers='import os, sysconfig; assert os.path.exists(sysconfig.get_path("include") + "/Python.h")'
  "$python" -c "$has_venv" 2>/dev/null || setup_apt python3-venv || return
  "$python" -c "$has_headers" 2>/dev/null || setup_apt python3-dev || return
  say "virtual environment: $folder ($("$python" -V))"
  "$python" -m venv --clear "$folder" || return
  echo "$key" >"$folder/.stamp-created"
}

# install_requirements VENV FILE
install_requirements() {
  local folder=$1 file=$2 key
  key=$(sha256sum <"$file")
  is_current "$folder/.stamp-requirements" "$key" && return 0
  say "pip: ${file#"$ROOT/"}"
  "$folder/bin/python" -m pip install --requirement "$file" </dev/null || return
  echo "$key" >"$folder/.stamp-requirements"
}

setup_venv() { locked setup_venv_locked; }
setup_venv_locked() {
  create_venv "$VENV"
  install_requirements "$VENV" "$ROOT/requirements/dev.txt"
}

# ---- builds ---------------------------------------------------------------------------------------------------------

# Prints a hash of all that the extension module is made of. Python sources count by name only: an editable install
# runs them from the tree.
hash_sources() {
  (
    cd -- "$ROOT"
    find CMakeLists.txt pyproject.toml requirements/dev.txt include src bindings -type f -print0 | sort -z |
      xargs -0 sha256sum
    find python -name '*.py' | sort
    cat "$VENV/.stamp-created"
  ) | sha256sum
}

setup_package() { locked setup_package_locked; }
setup_package_locked() {
  setup_apt "${APT_BUILD[@]}"
  setup_venv_locked
  local key
  key=$(hash_sources)
  is_current "$VENV/.stamp-package" "$key" && return 0
  say "building msprobe-save (the first time takes minutes)"
  # -v: pip shows the progress of the build.
  "$VENV/bin/python" -m pip install -v --no-deps --no-build-isolation --editable "$ROOT" \
    --config-settings cmake.define.MSPROBE_WERROR=ON </dev/null
  echo "$key" >"$VENV/.stamp-package"
}

# The C++ core with its tests, without Python; also the compile commands for clang-tidy.
setup_core() {
  setup_apt "${APT_BUILD[@]}" "${APT_TEST[@]}"
  cmake -S "$ROOT" -B "$ROOT/build/core" -G Ninja --log-level=WARNING \
    -DMSPROBE_BUILD_TESTS=ON -DMSPROBE_WERROR=ON
}

# The peer, mindstudio-probe, in an environment of its own. Tests find it in MSPROBE_PEER_PYTHON and skip without it.
setup_peer() {
  if locked setup_peer_locked; then
    export MSPROBE_PEER_PYTHON="$PEER_VENV/bin/python"
  elif [[ "${CI:-}" == true ]]; then
    fail "mindstudio-probe could not be installed; CI does not skip the tests that need it"
  else
    say "mindstudio-probe could not be installed: the tests that run the peer's commands are skipped"
    unset MSPROBE_PEER_PYTHON
  fi
}
setup_peer_locked() {
  create_venv "$PEER_VENV" && install_requirements "$PEER_VENV" "$ROOT/requirements/peer.txt"
}
