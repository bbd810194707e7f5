#!/usr/bin/env bash
# Builds the site into build/site/html: tools/site.sh [--quick] [--check] [--here]
#
#   --quick    without the reference of all names, which needs Doxygen
#   --check    then opens it in headless Chromium: search, narrow screens, errors
#   --here     installs nothing; exits 77 if something is missing
#
# Installs what is missing: Zensical into build/site/venv (pip), Doxygen and Chromium by apt-get.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=tools/packages.sh
. tools/packages.sh

quick=() check=0 here=0
for argument in "$@"; do
    case $argument in
    --quick) quick=(--quick) ;;
    --check) check=1 ;;
    --here) here=1 ;;
    *) sed -n '2,8s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2 ;;
    esac
done

# need PROGRAM: is it there, or could it be installed by the package of its name?
need() {
    if command -v "$1" >/dev/null; then return 0; fi
    if [ $here = 1 ]; then note "left out, there is no $1"; exit 77; fi
    install_packages "$1"
}

zensical=$(command -v zensical || echo build/site/venv/bin/zensical)
if [ ! -x "$zensical" ]; then
    if [ $here = 1 ]; then note "left out, there is no zensical"; exit 77; fi
    python3 -m venv build/site/venv
    build/site/venv/bin/pip install --quiet --disable-pip-version-check -r tools/site/requirements.txt
fi
[ ${#quick[@]} -gt 0 ] || need "${DOXYGEN:-doxygen}"
[ $check = 0 ] || need chromium
python3 tools/site/build.py --zensical "$zensical" "${quick[@]}"
[ $check = 0 ] || python3 tools/site/browser.py build/site/html
