#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Instructions of a record, base and patched: raw_syscalls:sys_enter of close(-1), recorded
# in several ways, and by ftrace; and samples of cpu-clock. Guest time counts instructions
# (ICOUNT=1). The numbers are instructions beyond those of the call without events; those of
# 'flight' are of both records of a call, and of the recorder that reads them on the same CPU.
# Fails if patched is above the limit of a row.
#
# FLAVOUR=_preempt: on kernels with preemption and the ORC unwinder. There, a record is to take
# at most 1 / 2.5 of the base's instructions.
#
# usage: bench-tracepoint		on the host
#	 bench-tracepoint guest		in the guest; prints "CASE NUMBER" lines
set -euo pipefail
# shellcheck source=tools/testing/vm/lib.sh
. "${BASH_SOURCE[0]%/*}/lib.sh"
# shellcheck source=tools/testing/vm/counts.sh
. "${BASH_SOURCE[0]%/*}/counts.sh"

RUNS=${RUNS:-5}
CASES=(bare forward cgroup overwrite session no-cgroup ftrace second third passes rejects
	callchain clock clock-chain flight)
PROGRAM=$BUILD/vm/syscall-cost
EVENT=raw_syscalls:sys_enter
TRACING=/sys/kernel/tracing
CLOSE=3			# number of the system call
CLOCK=50000		# nanoseconds between samples of cpu-clock

# The buffer holds all that comes until perf reads. To lose a record has another cost.
record()
{
	perf record -q -m 4M -o /dev/null "$@" -- "$PROGRAM" "$OUT_FILE"
}

# The size is that of a usual recorder; its dump, at the end, is not counted.
by_flight()
{
	rm -rf /tmp/flight
	mkdir /tmp/flight
	perf record -q -M 16M -a -e 'raw_syscalls:*' -o /tmp/flight/dump -- \
		"$PROGRAM" "$OUT_FILE"
}

by_session()
{
	perf record -q -P cost -e "$EVENT" -a "$@"
	"$PROGRAM" "$OUT_FILE"
	perf ctl -d cost
}

by_ftrace()
{
	echo 1 >"$TRACING/events/raw_syscalls/sys_enter/enable"
	"$PROGRAM" "$OUT_FILE"
	echo 0 >"$TRACING/events/raw_syscalls/sys_enter/enable"
	echo >"$TRACING/trace"
}

run_case()
{
	OUT_FILE=/tmp/cost
	rm -f "$OUT_FILE"
	case $1 in
	bare) "$PROGRAM" "$OUT_FILE" ;;
	forward) record -e "$EVENT" ;;
	overwrite) record --overwrite -e "$EVENT" ;;
	cgroup) record --all-cgroups -e "$EVENT" ;;
	session) by_session ;;
	no-cgroup) by_session --no-all-cgroups ;;
	flight) by_flight ;;
	ftrace) by_ftrace ;;
	second) record -e "$EVENT" -e "$EVENT" ;;
	third) record -e "$EVENT" -e "$EVENT" -e "$EVENT" ;;
	passes) record -e "$EVENT" --filter "id == $CLOSE" ;;
	rejects) record -e "$EVENT" --filter "id != $CLOSE" ;;
	callchain) record -e "$EVENT" -g ;;
	clock) record -e cpu-clock -c "$CLOCK" ;;
	clock-chain) record -e cpu-clock -c "$CLOCK" -g ;;
	esac >"$OUT_FILE.log" 2>&1 || { cat "$OUT_FILE.log" >&2; die "$1 failed"; }
	printf '%s %s\n' "$1" "$(cat "$OUT_FILE")"
}

guest()
{
	mountpoint -q "$TRACING" || mount -t tracefs none "$TRACING"
	# The base has no sessions and no recorder.
	# shellcheck disable=SC2153 # what vm.sh boots
	if [ "$VARIANT" = base ]; then
		CASES=("${CASES[@]/session/}")
		CASES=("${CASES[@]/no-cgroup/}")
		CASES=("${CASES[@]/flight/}")
	fi
	run_cases "${CASES[@]}"
}

# Convert lines "VARIANT CASE NUMBER" to a table
table()
{
	awk -v clock=$CLOCK -v flavour="${FLAVOUR-}" '
	{ n[$1, $2]++; sum[$1, $2] += $3; sq[$1, $2] += $3 * $3
	  if (!seen[$2]++) order[++cases] = $2 }
	function mean(v, c) { return n[v, c] ? sum[v, c] / n[v, c] : 0 }
	# Of a sample: where t of a call were taken by samples, there were t / clock of them.
	function cost(v, c) {
		if (!n[v, c])
			return 0
		if (c ~ /^clock/)
			return clock * (1 - mean(v, "bare") / mean(v, c))
		if (c == "third")
			return mean(v, c) - mean(v, "second")
		return mean(v, c) - mean(v, c == "second" ? "forward" : "bare")
	}
	function dev(v, c,  m, d) {
		m = mean(v, c)
		d = n[v, c] > 1 ? (sq[v, c] - n[v, c] * m * m) / (n[v, c] - 1) : 0
		d = d > 0 ? sqrt(d) : 0
		return c ~ /^clock/ ? d * clock / m : d
	}
	function check(what, value, limit) {
		if (value <= limit)
			return ""
		bad++
		return sprintf("  more than %s", limit)
	}
	END {
		if (flavour) {
			must["forward"] = cost("base", "forward") / 2.5
			must["overwrite"] = must["session"] = must["forward"]
		} else {
			must["forward"] = must["overwrite"] = must["session"] = 450
			must["cgroup"] = 450
			must["second"] = must["third"] = 250
			must["passes"] = 500; must["rejects"] = 280; must["callchain"] = 2800
			must["clock"] = cost("base", "clock") - 200
			must["flight"] = 1650
		}
		printf "%-12s %20s %20s\n", "case", "base", "patched"
		for (i = 2; i <= cases; i++) {
			c = order[i]
			printf "%-12s %10.1f +- %6.2f %10.1f +- %6.2f%s\n", c, cost("base", c),
				dev("base", c), cost("patched", c), dev("patched", c),
				c in must ? check(c, cost("patched", c), must[c]) : ""
		}
		ratio = cost("patched", "forward") / cost("patched", "ftrace")
		printf "forward to ftrace: base %.2f, patched %.2f%s\n",
			cost("base", "forward") / cost("base", "ftrace"), ratio,
			flavour ? "" : check("ratio", ratio, 0.71)
		bare = 100 * (mean("patched", "bare") / mean("base", "bare") - 1)
		printf "without events: base %.2f, patched %.2f%s\n", mean("base", "bare"),
			mean("patched", "bare"), check("bare", bare < 0 ? -bare : bare, 0.1)
		printf "instructions per record; mean and standard deviation of %d runs; ",
			n["patched", "bare"]
		printf "second, third: of a further listener\n"
		exit bad > 0
	}'
}

if [ "${1-}" = guest ]; then
	guest
else
	mkdir -p "${PROGRAM%/*}"
	gcc -O2 -Wall -Werror -o "$PROGRAM" "$TOP/tools/testing/vm/syscall-cost.c"
	build_flavour
	count_on_both | tee "$BUILD/vm/tracepoint.counts" | table
fi
