#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The tests of LBR call stacks see what they are for: on the base's lbr.c, unchanged, some
# stacks are not whole, and the others are. What both bases do wrong:
#
#  - with Arch LBR and without XSAVES, stacks are too deep: what "perf/x86/intel/lbr: End a
#    saved call stack where it ends" fixes
#
# The rest is what "Save call stacks with the task, not the context" fixes, which on 7.3 is
# "Know whose call stack is in the registers". 6.12:
#
#  - the stacks of system-wide events are short, those of per-task events are not
#  - a task whose data has the address of another one's, which has exited, may get the
#    stack of that
#
# 7.3:
#
#  - two tasks with per-task events that swap their contexts lose their stacks; those of
#    system-wide events are whole
#  - where a system-wide event was off for a while, or is on some CPUs alone, a task gets a
#    stack that is not its own
set -uo pipefail
# shellcheck source=tools/testing/vm/lib.sh
. "${BASH_SOURCE[0]%/*}/lib.sh"
# shellcheck source=tools/testing/vm/tap.sh
. "${BASH_SOURCE[0]%/*}/tap.sh"
LOG=$BUILD/kunit/base-lbr.tap

# section CASE: the log of a case, on all processors
section()
{
	sed -nE "/# Subtest: $1\$/,/# $1: pass/p" "$LOG"
}

# verdicts CASE VERDICT...: "ok" or "not ok" of each processor: Haswell, Goldmont, Skylake,
# Arch LBR 32 and 16 deep, and by XSAVES
verdicts()
{
	local case=$1 text want
	shift
	text=$(section "$case" | sed -nE 's/^ *((not )?ok) [0-9]+ .*/\1/p')
	want=$(printf '%s\n' "$@")
	echo "$case: ${text//$'\n'/, }; ${want//$'\n'/, } expected"
	[ "$text" = "$want" ]
}

# depths CASE COUNT OPERATOR: COUNT processors fail, by a stack whose depth is -lt or -gt
# than what is expected
depths()
{
	local got want n=0
	while read -r got want; do
		echo "$got entries, $want expected"
		test "$got" "$3" "$want" || return 1
		n=$((n + 1))
	done < <(section "$1" |
		sed -nE -e 's/^ *task [0-9]+ on CPU [0-9]+: //' \
			-e 's/^([0-9]+) entries, ([0-9]+) expected.*/\1 \2/p')
	[ "$n" = "$2" ]
}

mkdir -p "${LOG%/*}"
"$TOP/tools/testing/vm/kunit.sh" base-lbr >"$LOG" || true
case $BASE in
6.12)
	tap_run "base: per-task stacks are whole, but of Arch LBR without XSAVES" \
		verdicts lbr_per_task "ok" "ok" "ok" "not ok" "not ok" "ok"
	tap_run "base: these have entries of a deeper stack" depths lbr_per_task 2 -gt
	tap_run "base: all have stacks of tasks that have exited" \
		verdicts lbr_per_task_exits "not ok" "not ok" "not ok" "not ok" "not ok" "not ok"
	tap_run "base: system-wide stacks are not whole, on any" \
		verdicts lbr_wide "not ok" "not ok" "not ok" "not ok" "not ok" "not ok"
	tap_run "base: because they are shorter" depths lbr_wide 6 -lt
	;;
7.3)
	tap_run "base: system-wide stacks are whole, but of Arch LBR without XSAVES" \
		verdicts lbr_wide "ok" "ok" "ok" "not ok" "not ok" "ok"
	tap_run "base: these have entries of a deeper stack" depths lbr_wide 2 -gt
	tap_run "base: per-task stacks are not whole, on any" \
		verdicts lbr_per_task "not ok" "not ok" "not ok" "not ok" "not ok" "not ok"
	tap_run "base: because they are shorter" depths lbr_per_task 6 -lt
	for case in lbr_both lbr_cpu_list; do
		tap_run "base: $case: stacks are not whole, on any" \
			verdicts $case "not ok" "not ok" "not ok" "not ok" "not ok" "not ok"
		tap_run "base: $case: they are of others" depths $case 6 -gt
	done
	;;
*)
	tap_run "verdicts for the base $BASE" false
	;;
esac
tap_end
