#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Run C suites of the patched perf, on the host or in a guest, and print TAP. One that
# crashes, or does not end within LIMIT seconds (300), has failed. A name is part of those of
# the cases, or of the suite that has none.
#
# usage: perf-test.sh NAME...
set -uo pipefail
# shellcheck source=tools/testing/vm/lib.sh
. "${BASH_SOURCE[0]%/*}/lib.sh"
# shellcheck source=tools/testing/vm/tap.sh
. "${BASH_SOURCE[0]%/*}/tap.sh"

# Not from the project's root: perf would take the tests below it.
mkdir -p "${OUT:=$BUILD/out}"
cd "$OUT" || exit
for name in "$@"; do
	# Forked, what is stopped would say nothing.
	text=$(timeout "${LIMIT:-300}" "$BUILD/patched/bin/perf" test -F "$name" 2>&1 </dev/null)
	status=$? cases=$TAP_N
	while IFS= read -r line; do
		[[ $line =~ ^\ *[0-9]+(\.[0-9]+)?:\ (.*[^ ])\ *:\ (Ok|Skip|FAILED!) ]] || continue
		case ${BASH_REMATCH[3]} in
		Ok) tap_ok 0 "${BASH_REMATCH[2]}" ;;
		Skip) tap_skip "${BASH_REMATCH[2]}" "perf test says so" ;;
		*) tap_ok 1 "${BASH_REMATCH[2]}" ;;
		esac
	done <<<"${text//$'\r'/$'\n'}"
	[ $status = 0 ] || tail -n 5 <<<"$text" | sed 's/^/# /'
	[ "$TAP_N" != "$cases" ] || status=1
	tap_ok $status "perf test ran, and ended well: $name"
done
tap_end
