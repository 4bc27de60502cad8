#!/bin/bash
# lintian finds no error in the .deb. Its warnings concern a package in Debian itself: bugs closed, a package for each soname.
set -euo pipefail
# shellcheck source=installed.sh
. "$(dirname "${BASH_SOURCE[0]}")/installed.sh"

command -v dpkg-shlibdeps >/dev/null || skip "there is no dpkg-dev to make a .deb"
command -v lintian >/dev/null || skip "there is no lintian to look at the .deb"
quiet "no .deb is made" cpack -G DEB --config "$BUILD/CPackConfig.cmake" -B "$work/packages"
lintian --allow-root "$work"/packages/*.deb >"$work/found" 2>&1 || true
grep -q '^W: hypersort: ' "$work/found" || { cat "$work/found"; fail "lintian did not look at the .deb"; }
if grep '^E: ' "$work/found"; then fail "lintian finds errors"; fi
echo "lintian finds no error, and $(grep -c '^W: ' "$work/found") warnings"
