#!/bin/bash
# Install the Debian packages that a group of targets needs and that are missing.
# usage: tools/setup.sh GROUP...     groups: build test bench cross python spark abi
#                                    windows wine signatures browser firefox desktop npm deb
#                                    deb-test packaging
# Needs root or sudo only when something is missing; says what it installs.
set -euo pipefail

declare -A packages=(
    [build]="gcc g++ libc6-dev make cmake ninja-build pkg-config python3 zlib1g-dev"
    [test]="ccache mold strace clang libclang-rt-14-dev libcmocka-dev libcurl4 python3-venv binutils mandoc openssl libssl-dev zsh fish"
    [abi]="abigail-tools binutils"
    [bench]="b3sum curl libjansson-dev libcjson-dev libjson-c-dev"
    [python]="python3-dev python3-venv"
    [browser]="chromium-headless-shell fonts-dejavu-core"
    [firefox]="firefox-esr"
    [desktop]="shared-mime-info file xdg-utils libglib2.0-bin dbus tumbler xvfb libgdk-pixbuf-2.0-0"
    [npm]="npm"
    [windows]="gcc-mingw-w64-x86-64-win32"
    [wine]="wine64"
    [signatures]="osslsigncode"
    [deb]="debhelper dh-python dpkg-dev fakeroot lintian python3-dev libcmocka-dev libssl-dev"
    [deb-test]="autopkgtest debian-archive-keyring mmdebstrap"
    [packaging]="ruby"
    [spark]="openjdk-17-jre-headless"
    [cross]="qemu-user gcc-aarch64-linux-gnu libc6-dev-arm64-cross gcc-s390x-linux-gnu libc6-dev-s390x-cross libc6-dev-i386 lib32gcc-12-dev"
)

die() { echo "setup: $*" >&2; exit 1; }

wanted=()
for group in "$@"; do
    [[ -n ${packages[$group]:-} ]] || die "no group '$group'; groups: ${!packages[*]}"
    read -ra more <<<"${packages[$group]}"
    wanted+=("${more[@]}")
done

if ! command -v dpkg-query >/dev/null; then
    echo "setup: not a Debian system; trusting that these are there: ${wanted[*]}" >&2
    exit 0
fi

missing=()
for package in "${wanted[@]}"; do
    [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) == installed ]] ||
        missing+=("$package")
done
[[ ${#missing[@]} -gt 0 ]] || exit 0

as_root=()
if [[ $(id -u) != 0 ]]; then
    if command -v sudo >/dev/null && { sudo -n true 2>/dev/null || [[ -t 0 ]]; }; then
        as_root=(sudo)
    else
        die "these packages are missing and neither root nor sudo is at hand:
    apt-get install ${missing[*]}"
    fi
fi

echo "setup: installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
apt() {
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=120 \
        -o Acquire::Retries=3 -y --no-install-recommends "$@" >"$log" 2>&1
}
# Lists that are already here may do; a stale or absent one is renewed once.
if ! apt install "${missing[@]}"; then
    apt update || { cat "$log" >&2; die "apt-get update failed"; }
    apt install "${missing[@]}" || { cat "$log" >&2; die "cannot install ${missing[*]}"; }
fi
