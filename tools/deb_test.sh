#!/bin/bash
# Install the packages of build/deb in a fresh Debian 12 as a user would, run their autopkgtests
# there, and remove them again. usage: tools/deb_test.sh     after `make deb`; needs root
set -euo pipefail
cd "$(dirname "$0")/.."
fresh=build/debian-root
inside=(tools/debian_root.sh enter "$fresh")
[[ -n $(compgen -G 'build/deb/*.changes') ]] || { echo "deb_test: no packages: make deb" >&2; exit 1; }
tools/setup.sh deb-test

step() { echo "deb_test: $*"; }

step "a fresh Debian"
tools/debian_root.sh make "$fresh"
"${inside[@]}" apt-get -qq update

step "apt install, without anything recommended"
cp build/deb/*.deb tests/install/use.sh "$fresh/tmp"
"${inside[@]}" bash -euo pipefail -c 'cd /tmp
rm ./*-dbgsym_*
apt-get -qq install -y --no-install-recommends ./libsafetensors*.deb ./safetensors_*.deb \
    ./python3-libsafetensors_*.deb >/dev/null
sh use.sh safetensors
python3 -c "import libsafetensors; print(libsafetensors.__version__)"
sh use.sh python3 -m libsafetensors'

step "autopkgtest"
log=build/autopkgtest
rm -rf "$log"
tools/debian_root.sh around "$fresh" autopkgtest --output-dir="$log" build/deb/*.changes \
    -- chroot "$fresh" >build/autopkgtest.log 2>&1 ||
    { tail -60 build/autopkgtest.log; exit 1; }
cat "$log/summary"
[[ $(grep -c ' PASS' "$log/summary") == $(grep -c '^Tests:' packaging/debian/tests/control) ]]

step "apt purge"
"${inside[@]}" bash -euo pipefail -c '
apt-get -qq purge -y $(dpkg-query -W -f "\${Package} \${db:Status-Status}\n" "*safetensors*" |
    sed -n "s/ installed\$//p") >/dev/null
left=$(find /usr /etc /var/lib/dpkg/info -name "*safetensors*")
[[ -z $left ]] || { echo "left: $left"; exit 1; }'
rm -rf --one-file-system "$fresh"
echo "deb_test: passed"
