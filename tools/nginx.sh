#!/bin/bash
# Print the path of nginx, for tests and benchmarks of remote files: the installed one, or Debian's
# unpacked into the cache. It is not installed: the package would start a server on port 80.
set -euo pipefail
found=$(PATH=$PATH:/usr/sbin command -v nginx || true)
[[ -z $found ]] || { echo "$found"; exit 0; }

cache=${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/libsafetensors/nginx
if [[ ! -x $cache/usr/sbin/nginx ]]; then
    mkdir -p "$(dirname "$cache")"
    new=$(mktemp -d "$cache-XXXXXX")
    trap 'rm -rf "$new"' EXIT
    (cd "$new" && apt-get -q download nginx >/dev/null && dpkg -x nginx_*.deb . && rm nginx_*.deb)
    "$new/usr/sbin/nginx" -v 2>/dev/null
    # Atomic: a rename. If another process was first, its copy is used.
    mv -T "$new" "$cache" 2>/dev/null || [[ -x $cache/usr/sbin/nginx ]]
fi
echo "$cache/usr/sbin/nginx"
