# Make a Python environment of pinned packages and this clone's own package, built from it. Does
# only what is not done already. Sourced by venv.sh, spark_env.sh, engines_env.sh,
# loaders_env.sh and zoo_env.sh, which set
#
#   name       of the folders: build/$name, and of its wheels
#   locks      files of requirements, from the root; every package is named in them
#   warm       Python that imports what every run imports: it is compiled once, not by each
#   fetch      the pip command that gets the wheels: "download --only-binary :all:", or
#              "wheel --use-pep517" where a source package is among them
#   download_size  the most that fetching takes
#
# Third-party wheels, and packages installed from them, are kept outside the clone, in folders named
# by the lock files: a second clone's environment is made without a network, of hard links to the
# same files. What another environment has fetched is not fetched again. Of two clones that need
# the same at once, the second waits for the first. Packages that no environment was made of for 60
# days are removed.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
sources=(CMakeLists.txt pyproject.toml LICENSE cmake data src include cli page bindings/python)
cache=${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/libsafetensors

say() { echo "$(basename "$0"): $*" >&2; }

pip() { "${new_venv:-$venv}/bin/python" -m pip --disable-pip-version-check "$@"; }

# What is half made would pass for whole.
forget() { rm -rf "${new:-}" "${new_venv:-}" "$venv"; }

settle_names() {
    local lock
    venv=$root/build/$name
    required=()
    for lock in "${locks[@]}"; do
        [[ -f $root/$lock ]] || { say "no $lock"; exit 2; }
        required+=(-r "$root/$lock")
    done
    key=$({ cat "${locks[@]/#/$root/}"
            "$python" -c 'import sys; print(sys.version, sys.base_prefix)'; } |
          sha256sum | cut -c1-16)
    wheels=$cache/wheels-$name-$key
    packages=$cache/packages-$name-$key
}

find_python() {
    local headers
    python=$(command -v python3) || { say "python3 is missing"; exit 1; }
    headers='import os, sysconfig; print(os.path.join(sysconfig.get_path("include"), "Python.h"))'
    [[ -e $("$python" -c "$headers") ]] || "$root/tools/setup.sh" python
}

fetch_wheels() {
    local near=() folder where=--dest lock
    mkdir -p "$cache"
    exec {lock}>"$wheels.lock"
    ! command -v flock >/dev/null || flock "$lock"
    [[ ! -d $wheels ]] || { exec {lock}>&-; return; }
    # Complete folders only: what is being fetched (new-*) holds wheels that are half written.
    for folder in "$cache"/wheels-*/; do
        [[ ! -d $folder ]] || near+=(--find-links "$folder")
    done
    new=$(mktemp -d "$cache/new-XXXXXX")
    trap forget EXIT
    mkdir "$new/wheels" "$new/tmp"
    say "fetching the packages of ${locks[*]} into $wheels"
    [[ $fetch != wheel* ]] || where=--wheel-dir
    # What is built is built on the disk that will hold it.
    # shellcheck disable=SC2086
    if ! TMPDIR=$new/tmp pip $fetch -qq --no-deps --no-cache-dir --retries 5 "${near[@]}" \
        "${required[@]}" $where "$new/wheels"; then
        say "cannot fetch the packages of ${locks[*]}: that needs PyPI, or another index in pip's" \
            "configuration, once, and $download_size in $cache ($(df -h --output=avail "$cache" |
            tail -1 | tr -d ' ') are free)"
        exit 1
    fi
    # Atomic: a rename. If another process was first, its copy is used.
    mv -T "$new/wheels" "$wheels" 2>/dev/null || [[ -d $wheels ]]
    rm -rf "$new"
    exec {lock}>&-
}

# An environment in a folder without a name yet, and the name when it is whole.
install_packages() {
    local lock
    mkdir -p "$cache"
    exec {lock}>"$packages.lock"
    ! command -v flock >/dev/null || flock "$lock"
    if [[ ! -d $packages ]]; then
        new_venv=$(mktemp -d "$cache/new-XXXXXX")
        # ensurepip is a package of its own on Debian.
        "$python" -m venv "$new_venv" >/dev/null ||
            { "$root/tools/setup.sh" test; "$python" -m venv "$new_venv"; }
        [[ -d $wheels ]] || fetch_wheels
        pip install -qq --no-index --no-deps --no-compile --find-links "$wheels" "${required[@]}"
        env -u PYTHONDONTWRITEBYTECODE "$new_venv/bin/python" -W ignore -c "$warm"
        # Atomic: a rename. If another process was first, its copy is used.
        mv -T "$new_venv" "$packages" 2>/dev/null || [[ -d $packages ]]
        rm -rf "$new_venv"
        new_venv=
    fi
    touch "$packages"
    # A lock is touched whenever it is taken.
    find "$cache" -maxdepth 1 -name 'packages-*' '(' -type d -o -name '*.lock' ')' -mtime +60 \
        -exec rm -rf {} +
    exec {lock}>&-
}

make_venv() {
    local part script
    rm -rf "$venv"
    mkdir -p "$root/build"
    trap forget EXIT
    install_packages
    "$python" -m venv --without-pip "$venv"
    # Links, or copies where the cache is on another disk. Nothing writes into such a file: pip and
    # Python replace files.
    for part in "$packages"/*; do
        [[ ! -d $part || -L $part || $part == */bin ]] ||
            cp -al "$part" "$venv/" 2>/dev/null || cp -a "$part" "$venv/"
    done
    for script in "$packages"/bin/*; do
        [[ -e $venv/bin/${script##*/} ]] ||
            sed "1s|^#!.*/bin/python[0-9.]*$|#!$venv/bin/python|" "$script" >"$venv/bin/${script##*/}"
    done
    chmod +x "$venv"/bin/*
    [[ -d $wheels ]] || fetch_wheels
    ln -sfn "$wheels" "$venv/wheels"
    echo "$key" >"$venv/key"
    trap - EXIT
}

# Whether a file of this clone's package is newer than a stamp, or there is none.
is_old() {
    [[ ! -e $1 || -n $(find "${sources[@]}" -newer "$1" -not -name __pycache__ -not -name '*.pyc' \
                       -print -quit) ]]
}

# In build/package-*, for all environments of one Python: this clone's source package, what it holds,
# and the wheel made of that, so that a file that it lacks is missed at once. It is compiled as
# tests/run.py compiles the library (the compiler's name, -Werror, the way from the build folder to
# the sources): what ccache has of the one is the other's. Its lock is held until the wheel is
# installed, so that no other make replaces it meanwhile.
make_wheel() {
    package=build/package-$("$python" -c 'import sys; print(sys.implementation.cache_tag + sys.abiflags)')
    mkdir -p "$package"
    exec {wheel_lock}>"$package/lock"
    ! command -v flock >/dev/null || flock "$wheel_lock"
    if is_old "$package/made"; then
        touch "$package/made.new"
        rm -f "$package"/*.tar.gz "$package"/*.whl
        "$venv/bin/python" tools/unpack_changed.py "$package" >/dev/null
        CC=${CC:-cc} pip wheel -qq --no-index --no-deps --no-build-isolation --wheel-dir "$package" \
            --config-settings=build-dir="$root/$package/source/build" \
            --config-settings=cmake.define.SFT_WERROR=ON "./$package/source"
        mv "$package/made.new" "$package/made"
    fi
}

install_package() {
    local wheel_lock
    cd "$root"
    [[ ! -e $venv/made ]] || is_old "$venv/package" || return 0
    touch "$venv/package.new"
    make_wheel
    pip install -qq --no-index --no-deps --force-reinstall "$package"/*.whl
    exec {wheel_lock}>&-
    ln -sfn "$root/$package" "$venv/made"
    mv "$venv/package.new" "$venv/package"
}

# Of two that make the same environment at once, the second waits, and has nothing left to do.
make_environment() {
    local lock
    find_python
    settle_names
    mkdir -p "$root/build"
    exec {lock}>"$root/build/$name.lock"
    ! command -v flock >/dev/null || flock "$lock"
    [[ -e $venv/key && $(<"$venv/key") == "$key" && -d $wheels ]] || make_venv
    install_package
    exec {lock}>&-
}
