#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Run the suites of tools/testing/vm/suites and count. Last line:
# 'N passed, N failed, N skipped'. Exit 1 when one failed, or nothing ran.
#
# usage: run-tests            ONLY=PATTERN (shell pattern) runs part of them
#
# SUITES names another list. With MINUTES each of its suites is told its share of
# them as TORTURE_SECS, in a guest too, and its time-out is that much later.
set -euo pipefail
# shellcheck source=tools/testing/vm/lib.sh
. "${BASH_SOURCE[0]%/*}/lib.sh"

LOGS=$BUILD/test
ONLY=${ONLY:-*}
SUITES=${SUITES:-$TOP/tools/testing/vm/suites}
passed=0 failed=0 skipped=0
declare -A running=() started=()
complaints=()
share=0

run_suite()
{
	local where=$1 seconds=$2 command=$3 variant accel smp
	export OUT
	mkdir -p "$OUT"
	cd "$TOP"
	if [ $share != 0 ]; then
		seconds=$((seconds + share))
		command="export MINUTES=$MINUTES TORTURE_SECS=$share; $command"
	fi
	if [ "$where" = host ]; then
		exec timeout -k 10 "$seconds" bash -c "$command"
	fi
	IFS=: read -r variant accel smp <<<"$where"
	VARIANT=$variant ACCEL=${accel:-single} SMP=${smp:-2} TIMEOUT=$seconds CMD=$command MEM='' \
		APPEND='' ICOUNT='' exec "$TOP/tools/testing/vm/vm.sh"
}

# What failed, each after the end of what was said about it.
failures()
{
	local line said=() from
	while IFS= read -r line; do
		if [[ $line =~ ^\ *not\ ok\ [0-9] ]]; then
			from=$((${#said[@]} > 8 ? ${#said[@]} - 8 : 0))
			[ ${#said[@]} = 0 ] || printf '    | %.400s\n' "${said[@]:from}"
			echo "  $1: ${line#"${line%%[! ]*}"}"
		fi
		if [[ $line =~ ^\ *# ]]; then
			said+=("$line")
		else
			said=()
		fi
	done < <(tr -d '\0\r' <"$LOGS/$1.log")
}

# complain TEXT: now, and once more at the end, where nobody can overlook it
complain()
{
	complaints+=("$1")
	echo "$1"
}

# Count a suite's TAP lines; say what failed and what was skipped, and why.
judge()
{
	local name=$1 rc=$2 log=$LOGS/$1.log ok bad skip took
	took=$((SECONDS - started[$name]))
	skip=$(grep -aciE '^ *ok [0-9]+.*# *skip' "$log" || true)
	ok=$(grep -acE '^ *ok [0-9]+' "$log" || true)
	bad=$(grep -acE '^ *not ok [0-9]+' "$log" || true)
	ok=$((ok - skip))
	[ "$bad" = 0 ] || complain "$(failures "$name")"
	grep -aiE '^ *ok [0-9]+.*# *skip' "$log" | sed "s|^ *|  $name: |" || true
	if [ "$rc" != 0 ] && { [ "$bad" = 0 ] || [ "$rc" = 99 ] || [ "$rc" = 124 ]; }; then
		bad=$((bad + 1))
		tail -n 15 "$log" | sed 's/^/    | /'
		complain "  $name: ended with status $rc: $(grep -av '^ *$' "$log" | tail -n1)"
	elif [ "$((ok + bad + skip))" = 0 ]; then
		bad=1
		complain "  $name: printed no result"
	fi
	[ "$bad" = 0 ] || echo "  $name: the whole output is $log"
	printf '%-28s %4d passed %3d failed %3d skipped  %4d s\n' \
		"$name" "$ok" "$bad" "$skip" "$took"
	passed=$((passed + ok)) failed=$((failed + bad)) skipped=$((skipped + skip))
}

# Wait until at most $1 suites are running.
drain()
{
	local pid name rc
	while [ ${#running[@]} -gt "$1" ]; do
		rc=0
		wait -n -p pid "${!running[@]}" || rc=$?
		name=${running[$pid]}
		unset "running[$pid]"
		judge "$name" "$rc"
	done
}

start_suite()
{
	local name=$1
	mkdir -p "$LOGS"
	started[$name]=$SECONDS
	OUT=$BUILD/out/$name run_suite "$2" "$3" "$4" >"$LOGS/$name.log" 2>&1 </dev/null &
	running[$!]=$name
}

# The suites that are to run: NAME WHERE SECONDS COMMAND
chosen()
{
	local name rest
	while read -r name rest; do
		[[ -n $name && $name != \#* ]] || continue
		# shellcheck disable=SC2053 # ONLY is a pattern
		[[ $name == $ONLY ]] || continue
		echo "$name $rest"
	done <"$SUITES"
}

main()
{
	local name where seconds command alone begin=$SECONDS list
	list=$(chosen)
	[ -n "$list" ] || die "no suite is called $ONLY"
	[ -z "${MINUTES:-}" ] || share=$((MINUTES * 60 / $(grep -c . <<<"$list")))
	trap 'trap - EXIT; kill -- "${!running[@]}" 2>/dev/null || true' EXIT
	trap 'exit 130' INT TERM
	while read -r name where seconds command; do
		alone=
		if [[ $where == !* || $where == *:multi* ]]; then
			alone=1
			where=${where#!}
		fi
		drain $((alone ? 0 : 1))
		start_suite "$name" "$where" "$seconds" "$command"
		[ -z "$alone" ] || drain 0
	done <<<"$list"
	drain 0
	trap - EXIT
	echo "tests took $((SECONDS - begin)) s"
	[ ${#complaints[@]} = 0 ] || printf '%s\n' 'What failed:' "${complaints[@]}"
	echo "$passed passed, $failed failed, $skipped skipped"
	[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
}

main "$@"
