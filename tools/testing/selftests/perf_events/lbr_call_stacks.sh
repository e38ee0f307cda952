#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# For machines with LBR call stacks: are those of perf record -a as deep as those of perf
# record of the same program? Prints a table that can be sent.
#
# Two programs that loop through main(), f1(), f2() and f3() share a CPU, so that they are
# switched. They are recorded per process, then system-wide. A stack is whole if it has all
# four functions and their caller. Without per-task PMU data the functions that were called
# before the last switch are missing system-wide: in 2021, 62 % of those stacks began at
# main(), 29 % at f1().
#
# usage: lbr_call_stacks.sh [SECONDS]	of each recording (10); as root
#
# PERF is the perf to run, LBR_CHAIN the program (lbr_chain beside this script).
# Status: 0 as deep; 1 not; 4 it cannot be told here, and the last line says why.
set -euo pipefail

SECONDS_EACH=${1:-10}
PERF=${PERF:-perf}
LBR_CHAIN=${LBR_CHAIN:-$(dirname "$(readlink -f "$0")")/lbr_chain}
STATISTICS=/sys/kernel/perf_ctx_data
DIR=$(mktemp -d /tmp/lbr-call-stacks.XXXXXX)
export SECONDS_EACH LBR_CHAIN CPU
CPU=$(sed -nE 's/^Cpus_allowed_list:\s*([0-9]+).*/\1/p' /proc/self/status)
trap 'rm -rf "$DIR"' EXIT

refuse()
{
	echo "lbr_call_stacks: $*" >&2
	exit 4
}

model()
{
	sed -n 's/^model name[^:]*: //p;T;q' /proc/cpuinfo
}

# Each is asked for what can be asked for without the next one.
check_machine()
{
	[ "$(id -u)" = 0 ] || refuse "system-wide events need root: run this as root"
	command -v "$PERF" >/dev/null || refuse "there is no $PERF: name one with PERF=FILE"
	[ -x "$LBR_CHAIN" ] ||
		refuse "$LBR_CHAIN is missing: build it with" \
			"'make -C tools/testing/selftests/perf_events'"
	"$PERF" record -q -e cycles:u --call-graph lbr -o "$DIR/try" -- true &>"$DIR/try.log" ||
		refuse "this machine ($(model)) has no LBR call stacks: it takes an Intel" \
			"processor since Haswell, and a virtual machine must be given them"
}

# Two at once, on one CPU. Each prints its switches.
workload()
{
	taskset -c "$CPU" "$LBR_CHAIN" "$SECONDS_EACH" &
	taskset -c "$CPU" "$LBR_CHAIN" "$SECONDS_EACH"
	wait
}

# record NAME OPTION...
record()
{
	local name=$1
	shift
	"$PERF" record -q -e cycles:u -F 999 --call-graph lbr -o "$DIR/$name" "$@" -- \
		bash -c "$(declare -f workload); workload" \
		>"$DIR/$name.switches" 2>"$DIR/$name.log" || {
		cat "$DIR/$name.log" >&2
		refuse "perf record $* failed, see above"
	}
}

# While the system-wide recording runs
note_memory()
{
	sleep $((SECONDS_EACH / 2))
	echo "$(cat $STATISTICS/tasks) tasks, $(cat $STATISTICS/bytes) bytes"
}

# count NAME: "OUTERMOST NUMBER" lines of the stacks whose innermost function is f3
count()
{
	"$PERF" script -i "$DIR/$1" --comm lbr_chain -F comm,ip,sym 2>/dev/null | awk '
	BEGIN { split("f3 f2 f1 main", chain) }
	function stack(  n) {
		if (!depth || frames[1] != "f3")
			return
		for (n = 1; n < 4 && n < depth && frames[n + 1] == chain[n + 1]; n++)
			;
		if (n == 4)
			nr[depth > 4 ? "whole" : "main"]++
		else
			nr[n == depth ? chain[n] : "wrong"]++
		all++
	}
	/^[^ \t]/ { stack(); depth = 0; next }
	NF > 1 { frames[++depth] = $2 }
	END {
		stack()
		for (i in nr)
			print i, nr[i]
		print "samples", all + 0
	}'
}

table()
{
	awk '
	BEGIN {
		split("task wide", modes)
		titles["whole"] = "whole, with the caller of main()"
		titles["main"] = "from main() on"
		titles["f1"] = "from f1() on"
		titles["f2"] = "from f2() on"
		titles["f3"] = "f3() alone"
		titles["wrong"] = "with a wrong function"
	}
	{ nr[$1, $2] = $3 }
	function share(mode, what) {
		return 100 * nr[mode, what] / (nr[mode, "samples"] ? nr[mode, "samples"] : 1)
	}
	END {
		printf "%-34s %12s %12s\n", "stacks of samples in f3()",
			"per process", "system-wide"
		for (i = 1; i <= split("whole main f1 f2 f3 wrong", rows); i++)
			printf "%-34s %10.2f %% %10.2f %%\n", titles[rows[i]],
				share("task", rows[i]), share("wide", rows[i])
		for (i = 1; i <= split("samples switches", rows); i++)
			printf "%-34s %12d %12d\n", rows[i],
				nr["task", rows[i]], nr["wide", rows[i]]
		for (i = 1; i <= 2; i++)
			few = few || nr[modes[i], "samples"] < 100 || nr[modes[i], "switches"] < 10
		if (few) {
			print "too few samples or switches: try more SECONDS"
			exit 4
		}
		task = share("task", "whole")
		if (share("wide", "whole") < task - 1 || task < 50) {
			print "system-wide stacks are shorter, or none are whole"
			exit 1
		}
		print "system-wide stacks are as deep as those per process"
	}'
}

# The registers of each kind of processor
registers()
{
	cat /sys/bus/event_source/devices/cpu*/caps/branches 2>/dev/null | sort -u | xargs
}

check_machine
record task
echo "none for each task: the kernel lacks $STATISTICS" >"$DIR/memory"
[ ! -d $STATISTICS ] || note_memory >"$DIR/memory" &
record wide -a
wait
echo "kernel  $(uname -r) $(uname -m)"
echo "CPU     $(model)"
echo "LBRs    $(registers)"
echo "perf    $("$PERF" version)"
echo "memory  $(cat "$DIR/memory")"
for mode in task wide; do
	count $mode | sed "s/^/$mode /"
	echo "$mode switches $(awk '{ n += $1 } END { print n + 0 }' "$DIR/$mode.switches")"
done | table
