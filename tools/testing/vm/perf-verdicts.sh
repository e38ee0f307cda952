#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# perf's own C suites give no worse verdict than on the base: they are run in the
# base variant and in the patched one at the same time, and compared by name. What
# only reads tables (no kernel in it, minutes under emulation) runs on the host.
#
# usage: perf-verdicts.sh [shell]   the base's shell suites instead, one by one, each
#                                   with a time-out (minutes each under emulation)
set -uo pipefail
# shellcheck source=tools/testing/vm/lib.sh
. "${BASH_SOURCE[0]%/*}/lib.sh"
# shellcheck source=tools/testing/vm/tap.sh
. "${BASH_SOURCE[0]%/*}/tap.sh"

export OUT=${OUT:-$BUILD/out/perf.verdicts}
KIND=${1:-c}
LIMIT=${LIMIT:-300}
TABLES='PMU JSON event tests'

# What the base's shell tests are called
shell_names()
{
	local f dir=$BUILD/base/src/tools/perf/tests/shell

	for f in "$dir"/*.sh "$dir"/*/*.sh; do
		sed -n '2s/^# *//p' "$f"
	done
}

# NUMBER NAME of each suite of a perf. Not from the project's root: perf would
# take the tests below it.
suites_of()
{
	(cd "$OUT" && "$1" test list) 2>&1 | sed -nE 's/^ *([0-9]+): (.*[^ ]) *$/\1 \2/p'
}

# Those in C: they come before the first in shell.
c_suites()
{
	local number name text
	text=$(shell_names)
	suites_of "$1" | while read -r number name; do
		! grep -qxF "$name" <<<"$text" || break
		echo "$number $name"
	done
}

shell_suites()
{
	local number name text
	text=$(shell_names)
	suites_of "$1" | while read -r number name; do
		! grep -qxF "$name" <<<"$text" || echo "$number $name"
	done
}

# verdicts VARIANT TIMEOUT COMMAND: in the guest, as "name: verdict" to $OUT/VARIANT
verdicts()
{
	VARIANT=$1 SMP=2 MEM='' ACCEL=single ICOUNT='' APPEND='' TIMEOUT=$2 \
		CMD="cd /tmp && $3; true" "$TOP/tools/testing/vm/vm.sh" \
		>"$OUT/$1.log" 2>&1
}

run_c()
{
	local variant=$1 perf=$BUILD/$1/bin/perf suites tables
	suites=$(c_suites "$perf")
	tables=$(sed -n "s/ $TABLES\$//p" <<<"$suites")
	suites=$(grep -v " $TABLES\$" <<<"$suites" | cut -d' ' -f1 | tr '\n' ' ')
	verdicts "$variant" 540 "perf test $suites" || return 1
	(cd "$OUT" && "$perf" test "$tables") >>"$OUT/$variant.log" 2>&1
}

run_shell()
{
	local numbers
	numbers=$(shell_suites "$BUILD/$1/bin/perf" | cut -d' ' -f1 | tr '\n' ' ')
	verdicts "$1" 5400 \
		"LIMIT=$LIMIT $TOP/tools/testing/vm/${BASH_SOURCE[0]##*/} in-guest $numbers"
}

# in_guest NUMBER...: one by one. A time-out is a verdict, too.
in_guest()
{
	local number status
	for number in "$@"; do
		SECONDS=0 status=0
		timeout -k 5 "$LIMIT" perf test "$number" </dev/null || status=$?
		case $status in
		124|137)
			perf test list 2>&1 | sed -nE "s/^( *$number: .*[^ ]) *\$/\1 : Timeout/p"
			;;
		esac
		echo "# $number took $SECONDS s"
	done
}

run_variant()
{
	"run_$KIND" "$1" || return 1
	sed -nE 's/^ *[0-9]+(\.[0-9]+)?: (.*[^ ]) *: (Ok|Skip|FAILED!|Timeout).*/\2: \3/p' \
		"$OUT/$1.log" >"$OUT/$1"
}

compare()
{
	local name before after
	while IFS= read -r name; do
		before=$(grep -m1 -F "$name: " "$OUT/base" | sed 's/.*: //')
		after=$(grep -m1 -F "$name: " "$OUT/patched" | sed 's/.*: //')
		case "$before>$after" in
		'FAILED!>FAILED!') echo "# fails on the base as well: $name" ;;
		'Timeout>Timeout') echo "# takes over $LIMIT s on the base as well: $name" ;;
		esac
		case "$before>$after" in
		*'>Ok'|'Skip>Skip'|'FAILED!>FAILED!'|'FAILED!>Skip'|'Timeout>Timeout')
			tap_ok 0 "perf test: $name"
			;;
		*)
			echo "# base: ${before:-none}, patched: ${after:-none}"
			tap_ok 1 "perf test: $name"
			;;
		esac
	done < <(sed 's/: [^:]*$//' "$OUT/base" "$OUT/patched" | sort -u)
}

if [ "$KIND" = in-guest ]; then
	shift
	in_guest "$@"
	exit
fi
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
