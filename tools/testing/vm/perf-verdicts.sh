#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# perf's own C suites give no worse verdict than on the base: they are run in the
# base variant and in the patched one at the same time, and compared by name. What
# only reads tables (no kernel in it, minutes under emulation) runs on the host.
set -uo pipefail
# shellcheck source=tools/testing/vm/lib.sh
. "${BASH_SOURCE[0]%/*}/lib.sh"
# shellcheck source=tools/testing/vm/tap.sh
. "${BASH_SOURCE[0]%/*}/tap.sh"

export OUT=${OUT:-$BUILD/out/perf.verdicts}
TABLES='PMU JSON event tests'

# The numbers of a perf's C suites: those before the first shell test, whose
# description is that of a file in tests/shell.
c_suites()
{
	local perf=$1 dir=$BUILD/base/src/tools/perf/tests/shell
	local text number name
	text=$(for f in "$dir"/*.sh "$dir"/*/*.sh; do sed -n '2s/^# *//p' "$f"; done)
	# Not from the project's root: perf would take the tests below it.
	(cd "$OUT" && "$perf" test list) 2>&1 | sed -nE 's/^ *([0-9]+): (.*[^ ]) *$/\1 \2/p' |
		while read -r number name; do
			! grep -qxF "$name" <<<"$text" || break
			echo "$number $name"
		done
}

# run_variant VARIANT: verdicts as "name: verdict" to $OUT/VARIANT
run_variant()
{
	local variant=$1 perf=$BUILD/$1/bin/perf suites tables
	suites=$(c_suites "$perf")
	tables=$(sed -n "s/ $TABLES\$//p" <<<"$suites")
	suites=$(grep -v " $TABLES\$" <<<"$suites" | cut -d' ' -f1 | tr '\n' ' ')
	VARIANT=$variant SMP=2 MEM='' ACCEL=single ICOUNT='' APPEND='' TIMEOUT=540 \
		CMD="cd /tmp && perf test $suites; true" "$TOP/tools/testing/vm/vm.sh" \
		>"$OUT/$variant.log" 2>&1 || return 1
	(cd "$OUT" && "$perf" test "$tables") >>"$OUT/$variant.log" 2>&1
	sed -nE 's/^ *[0-9]+(\.[0-9]+)?: (.*[^ ]) *: (Ok|Skip|FAILED!).*/\2: \3/p' \
		"$OUT/$variant.log" >"$OUT/$variant"
}

compare()
{
	local name before after
	while IFS= read -r name; do
		before=$(grep -m1 -F "$name: " "$OUT/base" | sed 's/.*: //')
		after=$(grep -m1 -F "$name: " "$OUT/patched" | sed 's/.*: //')
		[ "$before" != "$after" ] || [ "$after" != 'FAILED!' ] ||
			echo "# fails on the base as well: $name"
		case "$before>$after" in
		*'>Ok'|'Skip>Skip'|'FAILED!>FAILED!'|'FAILED!>Skip') tap_ok 0 "perf test: $name" ;;
		*)
			echo "# base: ${before:-none}, patched: ${after:-none}"
			tap_ok 1 "perf test: $name"
			;;
		esac
	done < <(sed 's/: [^:]*$//' "$OUT/base" "$OUT/patched" | sort -u)
}

mkdir -p "$OUT"
run_variant base &
pid=$!
run_variant patched
rc=$?
wait $pid || rc=1
if [ $rc != 0 ]; then
	tail -n 5 "$OUT"/*.log
	tap_ok 1 "perf test runs to its end on base and patched"
fi
compare
tap_end
