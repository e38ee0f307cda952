#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Instructions of a context switch, and of a system call, that a flight recorder watches for
# waits that are too long, when there is none: with latency/runq/, latency/offcpu/ and syscall/,
# beside none of them. Guest time counts instructions (ICOUNT=1). Fails if a switch takes more
# than 250 instructions more with a trigger.
#
# usage: bench-latency		on the host
#	 bench-latency guest	in the guest; prints "CASE NUMBER" lines
set -euo pipefail
# shellcheck source=tools/testing/vm/lib.sh
. "${BASH_SOURCE[0]%/*}/lib.sh"
# shellcheck source=tools/testing/vm/counts.sh
. "${BASH_SOURCE[0]%/*}/counts.sh"

RUNS=${RUNS:-5}
CASES=(switch switch-runq switch-offcpu call call-syscall)
PROGRAM=$BUILD/vm/syscall-cost
SWITCH=$BUILD/vm/switch-cost
LIMIT=250

# watch TRIGGER COMMAND...: beside a recorder that records nothing
watch()
{
	local trigger=$1
	shift
	"$BUILD/patched/bin/perf" record -M 1M -a -e dummy -o /tmp/watch --trigger "$trigger" \
		-- "$@"
}

run_case()
{
	local out=/tmp/cost trigger=signal
	rm -f "$out"
	case $1 in
	*-syscall) trigger=syscall/name=fsync,over=1s/ ;;
	*-*) trigger=latency/${1#*-},over=20ms,comm=nobody/ ;;
	esac
	case $1 in
	call*) watch "$trigger" "$PROGRAM" "$out" ;;
	# The number of page tables depends on the random memory layout.
	switch*) watch "$trigger" setarch -R "$SWITCH" switch "$out" ;;
	esac >/tmp/watch.log 2>&1 || { cat /tmp/watch.log >&2; return 1; }
	printf '%s %s\n' "$1" "$(cat "$out")"
}

# Convert lines "CASE NUMBER" to a table
table()
{
	awk -v limit=$LIMIT '
	# Sorted: the recorder may have other work in one of them.
	NF == 2 && $2 + 0 {
		for (i = n[$1]++; i && cost[$1, i - 1] > $2 + 0; i--)
			cost[$1, i] = cost[$1, i - 1]
		cost[$1, i] = $2 + 0
	}
	function median(c) { return cost[c, int(n[c] / 2)] }
	function row(c, than,  more) {
		more = median(c) - median(than)
		printf "%-14s %10.1f %+10.1f\n", c, median(c), more
		return !n[c] || !n[than] || (than == "switch" && more > limit)
	}
	END {
		bad = row("switch", "switch") + row("switch-runq", "switch")
		bad += row("switch-offcpu", "switch")
		bad += row("call", "call") + row("call-syscall", "call")
		print "instructions per switch, or close(-1), median; and more than without"
		exit bad > 0
	}'
}

if [ "${1-}" = guest ]; then
	run_cases "${CASES[@]}"
else
	mkdir -p "${PROGRAM%/*}"
	gcc -O2 -Wall -Werror -o "$PROGRAM" "$TOP/tools/testing/vm/syscall-cost.c"
	gcc -O2 -Wall -Werror -o "$SWITCH" "$TOP/tools/testing/vm/switch-cost.c"
	CMD="RUNS=$RUNS $TOP/tools/testing/vm/${0##*/} guest" VARIANT=patched ICOUNT=1 SMP=1 \
		ACCEL=single TIMEOUT=900 "$TOP/tools/testing/vm/vm.sh" | table
fi
