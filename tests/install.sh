#!/bin/sh
# Installs a program for the tests where that is possible, a Debian or Ubuntu on which one may: install.sh PROGRAM PACKAGE…
set -e
program=$1
shift
command -v "$program" >/dev/null 2>&1 && exit 0
[ -x "/usr/sbin/$program" ] && exit 0
command -v apt-get >/dev/null 2>&1 || { echo "there is no apt-get here" >&2; exit 1; }
run=""
if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null || { echo "installing needs root" >&2; exit 1; }
    run="sudo -n"
fi
# Services would be started that nobody has configured.
export DEBIAN_FRONTEND=noninteractive RUNLEVEL=1
$run apt-get install -y -qq --no-install-recommends "$@" >/dev/null 2>&1 && exit 0
$run apt-get update -qq >/dev/null 2>&1 || true
$run apt-get install -y -qq --no-install-recommends "$@" >/dev/null
