#!/bin/bash
# Make build/browser: the packages of tests/requirements-browser.txt, playwright among them, and
# node_modules with what tests/page/node/package-lock.json lists (TypeScript, axe-core). Installs
# Debian's headless Chromium, and with --firefox its Firefox too. Does only what is not done
# already; what is fetched is kept outside the clone (see environment.sh).
# usage: tools/browser_env.sh [--firefox] [--count]    --count: close with "N passed, N failed",
#                                                      for tests/run.py
# Programs find: build/browser/bin/python, build/browser/bin/node, build/browser/bin/chromium,
# build/browser/bin/firefox, build/browser/node_modules.
set -euo pipefail
name=browser
locks=(tests/requirements-browser.txt)
warm="import playwright.sync_api, websocket"
fetch="download --only-binary :all:"
download_size="60 MB"
source "$(dirname "$0")/environment.sh"

# The first of the named programs that is there is linked as bin/NAME; else GROUP is installed.
link_program() {
    local name=$1 group=$2 found= one
    shift 2
    for one in "$@"; do found=${found:-$(command -v "$one" || true)}; done
    if [[ -z $found ]]; then
        "$root/tools/setup.sh" "$group"
        for one in "$@"; do found=${found:-$(command -v "$one" || true)}; done
    fi
    [[ -n $found ]] || { say "none of these is there: $*"; exit 1; }
    ln -sfn "$found" "$venv/bin/$name"
}

fetch_node_modules() {
    command -v npm >/dev/null || "$root/tools/setup.sh" npm
    new=$(mktemp -d "$cache/new-XXXXXX")
    trap 'rm -rf "$new"' EXIT
    cp "$root"/tests/page/node/package*.json "$new"
    say "fetching the packages of tests/page/node/package-lock.json into $modules"
    (cd "$new" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error) ||
        { say "cannot fetch them: that needs the npm registry once"; exit 1; }
    # Atomic: a rename. If another process was first, its copy is used.
    mv -T "$new" "$modules" 2>/dev/null || [[ -d $modules ]]
    rm -rf "$new"
    trap - EXIT
}

find_python
settle_names
[[ -e $venv/key && $(<"$venv/key") == "$key" && -d $wheels ]] || make_venv
modules=$cache/node-$(cat "$root"/tests/page/node/package*.json | sha256sum | cut -c1-16)
[[ -d $modules ]] || fetch_node_modules
ln -sfn "$modules/node_modules" "$venv/node_modules"
ln -sfn "$("$venv/bin/python" -c 'import os, playwright
print(os.path.join(os.path.dirname(playwright.__file__), "driver", "node"))')" "$venv/bin/node"
link_program chromium browser chromium-headless-shell chromium google-chrome
[[ " $* " != *" --firefox "* ]] || link_program firefox firefox firefox-esr firefox
[[ " $* " != *" --count "* ]] || echo "1 passed, 0 failed"
