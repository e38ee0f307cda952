#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Put what the page of perf script report incident is made of where the script looks for
# it: DIRECTORY. d3 and d3-flame-graph come from npm, pinned by package-lock.json, with
# their licences; they are fetched once, below CACHE. Without npm, or without a network,
# the page has no flame graph; perf builds all the same.
#
# usage: install.sh CACHE DIRECTORY
set -euo pipefail

here=$(cd "${BASH_SOURCE[0]%/*}" && pwd -P)
cache=${1:-$here}/incident-page
directory=$2

say()
{
	printf 'incident page: %s\n' "$*" >&2
}

fetch()
{
	if cmp -s "$here/package-lock.json" "$cache/fetched"; then
		return
	fi
	if ! command -v npm >/dev/null; then
		say "npm is not there: perf script report incident will have no flame graph"
		return 1
	fi
	rm -rf "$cache"
	mkdir -p "$cache"
	cp "$here/package.json" "$here/package-lock.json" "$cache"
	if ! (cd "$cache" && timeout 120 npm ci --ignore-scripts --no-audit --no-fund \
		>npm.log 2>&1 </dev/null); then
		say "npm ci failed, see $cache/npm.log:" \
		    "perf script report incident will have no flame graph"
		return 1
	fi
	cp "$cache/package-lock.json" "$cache/fetched"
}

# d3 holds the modules that it is made of; some have licences and notices of their own.
licences()
{
	local module
	for module in d3 "$modules"/d3-* delaunator internmap robust-predicates; do
		module=$modules/${module##*/}
		if [ "${module##*/}" != d3-flame-graph ]; then
			printf '%s\n\n' "${module##*/}"
			cat "$module"/LICENSE*
			echo
		fi
	done
}

mkdir -p "$directory"
install -m 644 "$here"/{incident,machines}.{html,css,js} \
	"$here"/{common,lanes,compare,butterfly,findings}.js "$here"/{cells,machines}.py \
	"$directory"
rm -rf "${directory:?}/lib"
if fetch; then
	modules=$cache/node_modules
	mkdir -p "$directory/lib"
	install -m 644 "$modules/d3/dist/d3.min.js" "$directory/lib/d3.js"
	licences >"$directory/lib/d3.LICENSE"
	install -m 644 "$modules/d3-flame-graph/dist/d3-flamegraph.min.js" \
		"$directory/lib/d3-flame-graph.js"
	install -m 644 "$modules/d3-flame-graph/dist/d3-flamegraph.css" \
		"$directory/lib/d3-flame-graph.css"
	install -m 644 "$modules/d3-flame-graph/LICENSE" "$directory/lib/d3-flame-graph.LICENSE"
fi
