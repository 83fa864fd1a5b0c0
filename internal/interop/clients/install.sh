#!/usr/bin/env bash
# Install what the clients of the interop matrix need: each directory here that
# has a package-lock.json, a requirements.txt or a pom.xml, or those named as
# arguments. What is there already, in the versions that are asked for, stays.
#
#	clients/NAME/package-lock.json   npm ci             CACHE/NAME/node_modules
#	clients/NAME/requirements.txt    venv and pip       CACHE/NAME/bin/python
#	clients/NAME/pom.xml             mvn, its jars      CACHE/NAME/lib/*.jar
#
# CACHE is $WIREWAIT_CLIENTS, else /var/cache/wirewait-clients for root (whose
# home the servers' own user cannot enter), else ~/.cache/wirewait-clients. The
# tests look there and run the programs from the tree.
set -euo pipefail
cd "$(dirname "$0")"

if [ "$(id -u)" = 0 ]; then
	cache=${WIREWAIT_CLIENTS:-/var/cache/wirewait-clients}
else
	cache=${WIREWAIT_CLIENTS:-$HOME/.cache/wirewait-clients}
fi

with_npm() {
	cp "$1"/package.json "$1"/package-lock.json "$2"
	[ ! -e "$1/.npmrc" ] || cp "$1/.npmrc" "$2"
	(cd "$2" && npm ci --no-audit --no-fund --loglevel=error)
}

with_pip() {
	python3 -m venv "$2"
	"$2/bin/python" -m pip install -q --disable-pip-version-check --only-binary :all: -r "$1/requirements.txt"
}

with_maven() {
	mvn -q -B -ntp -Dstyle.color=never -f "$1/pom.xml" dependency:copy-dependencies -DoutputDirectory="$2/lib"
}

install() { # directory, function, files that say what is wanted
	local name=$1 how=$2 want
	shift 2
	want=$(cd "$name" && sha256sum "$@")
	if [ "$(cat "$cache/$name/installed" 2>/dev/null)" = "$want" ]; then
		return
	fi
	echo "clients: installing $name"
	rm -rf "${cache:?}/$name"
	mkdir -p "$cache/$name"
	"$how" "$name" "$cache/$name"
	chmod -R a+rX "$cache/$name"
	echo "$want" >"$cache/$name/installed" # last: a half-made one is made again
}

umask 022
mkdir -p "$cache"
for name in "${@:-*}"; do
	for dir in $name/; do
		dir=${dir%/}
		[ ! -e "$dir/package-lock.json" ] || install "$dir" with_npm package.json package-lock.json
		[ ! -e "$dir/requirements.txt" ] || install "$dir" with_pip requirements.txt
		[ ! -e "$dir/pom.xml" ] || install "$dir" with_maven pom.xml
	done
done
