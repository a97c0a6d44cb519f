#!/usr/bin/env bash
# Starts a PostgreSQL in a folder and epochcast on it, without containers: postgres-and-server.sh FOLDER [options of serve].
# Needs initdb, pg_ctl and createdb (Debian: apt-get install postgresql) and epochcast. Ctrl-C ends both.
set -euo pipefail
folder=$(realpath -m "${1:?where the database is to lie}"); shift
for place in /usr/lib/postgresql/*/bin; do PATH="$place:$PATH"; done
command -v initdb >/dev/null || { echo "initdb is not there: install PostgreSQL" >&2; exit 2; }
if [ "$(id -u)" = 0 ]; then echo "PostgreSQL does not run as root: use another user" >&2; exit 2; fi

if [ ! -f "$folder/data/PG_VERSION" ]; then
    mkdir -p "$folder"
    initdb --pgdata "$folder/data" --auth trust --username epochcast >"$folder/initdb.log"
fi
pg_ctl --pgdata "$folder/data" --log "$folder/postgres.log" --wait \
    --options "-k $folder -c listen_addresses=''" start
trap 'pg_ctl --pgdata "$folder/data" --mode fast stop' EXIT
psql --host "$folder" --username epochcast --tuples-only --no-align postgres \
    --command "SELECT 1 FROM pg_database WHERE datname = 'epochcast'" | grep -q 1 ||
    createdb --host "$folder" --username epochcast epochcast

export EPOCHCAST_STORE="postgresql://epochcast@/epochcast?host=$folder"
epochcast store migrate
epochcast serve "$@"
