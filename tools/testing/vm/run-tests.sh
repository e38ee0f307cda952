#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Run the suites of tools/testing/vm/suites and count. Last line:
# 'N passed, N failed, N skipped'. Exit 1 when one failed, or nothing ran.
#
# usage: run-tests            ONLY=PATTERN (shell pattern) runs part of them
#        run-tests --kernels  print series and variant of the kernels of other series that these
#                             suites need
#
# SUITES names another list, and TEST_LOGS another folder for the logs. With MINUTES each suite is
# told its share of them as TORTURE_SECS, in a guest too, and its time-out is that much later. What
# another list takes over from suites is not counted for that: it does what it does in make test.
#
# BESIDE is a command that builds the kernels of other series. It runs beside the suites; those
# that need such a kernel wait for its end.
#
# Theory of operation
# -------------------
# A job is what runs by itself: a suite on the host, or a boot, in which one suite
# or several run one after the other. The guest frames the output of each suite of
# a boot by two lines, "@@ begin NAME" and "@@ end NAME STATUS SECONDS"; the host
# takes the boot's output apart there, so that each suite has a log, a status and a
# time of its own. A suite that was begun and not ended has the boot's status; so
# has one that was not begun. What a boot says after its last suite (a splat, a
# leak) counts against all of them, by their names.
#
# Jobs start in the order of the list, as long as there is room: ROOM places. A job
# takes one place for each half of a CPU that it keeps busy (see "weight"). There is one place
# more than the two CPUs have halves: jobs also wait. More do not end sooner. A guest whose CPUs
# are stopped in turn takes more CPU time for the same work, as its ticks follow the clock: of
# eleven suites, 561 s with five places, and 615 s with seven, both in 330 s. BESIDE takes no
# place: it has the lowest priority, and thus what the jobs leave of the CPUs. When it has ended,
# there is one place more.
#
# No verdict depends on how busy the machine is: each time-out, those within the
# suites too, is SLACK times what an idle machine needs at most. It ends what hangs,
# and tells nothing else.
set -euo pipefail
# shellcheck source=tools/testing/vm/lib.sh
. "${BASH_SOURCE[0]%/*}/lib.sh"

LOGS=${TEST_LOGS:-$BUILD/test}
ONLY=${ONLY:-*}
LIST=$TOP/tools/testing/vm/suites
SUITES=${SUITES:-$LIST}
ROOM=5
export SLACK=${SLACK:-5}
passed=0 failed=0 skipped=0
# Of a suite, by its name; listed: its command in LIST
declare -A where_of=() seconds_of=() command_of=() took=() listed=()
# Of a job, by the name of its first suite
declare -A members=() started=()
jobs=()
# Of a job, by its process
declare -A running=()
used=0 cpu_before=0
# The build beside the suites: empty when none runs
beside=
complaints=()
share=0 sharing=0

# resolve COMMAND: sets $meant, which is the one that =NAME stands for, and $copy to the list that
# has it, if it is one
resolve()
{
	local before other
	copy='' meant=$1
	[[ $1 =~ ^(.*)=([a-z_.]+)$ ]] || return 0
	before=${BASH_REMATCH[1]} other=${BASH_REMATCH[2]}
	if [ -n "${command_of[$other]-}" ]; then
		copy=own meant=${command_of[$other]}
	elif [ -n "${listed[$other]-}" ]; then
		copy=listed meant=${listed[$other]}
	else
		return 0
	fi
	[ -z "$before" ] || meant="export $before; $meant"
}

# Other lists know the suites of make test, too.
read_listed()
{
	local name where seconds command copy meant
	while read -r name where seconds command; do
		[[ -n $name && $name != \#* ]] || continue
		resolve "$command"
		listed[$name]=$meant
	done <"$LIST"
}

# Read the list: the suites that are to run, and the jobs they make. A suite whose WHERE
# begins with a + goes into the boot of the one before it, if that is chosen too.
read_list()
{
	local name where seconds command copy meant first=
	read_listed
	while read -r name where seconds command; do
		[[ -n $name && $name != \#* ]] || continue
		[[ $where == +* ]] || first=
		resolve "$command"
		command_of[$name]=$meant
		# shellcheck disable=SC2053 # ONLY is a pattern
		[[ $name == $ONLY ]] || continue
		# Where another series is the base, all suites are for that one.
		if [[ $BASE != 6.12 && $where == */* ]]; then
			[[ -z $copy && $where =~ ^[~!+]?$BASE/ ]] || continue
			where=${where/"$BASE/"/}
		fi
		if [ -n "$first" ] && [ "${where_of[$first]#[~+]}" != "${where#+}" ]; then
			die "$name: its boot is ${where_of[$first]} of $first"
		fi
		if [ -z "$first" ]; then
			first=$name
			jobs+=("$name")
		fi
		[ "$copy" = listed ] || sharing=$((sharing + 1))
		members[$first]+="$name "
		where_of[$name]=${where#+}
		seconds_of[$name]=$seconds
	done <"$SUITES"
	[ ${#jobs[@]} -gt 0 ] || die "no suite is called $ONLY"
}

# How many of the places a job takes. '!' and a thread for each CPU (multi): all of them,
# nothing but BESIDE is beside it. '~': it mostly waits. Any other keeps one CPU busy.
weight()
{
	case ${where_of[$1]} in
	beside) echo 0 ;;
	!*|*:multi*) echo 100 ;;
	\~*) echo 1 ;;
	*) echo 2 ;;
	esac
}

# The time-out of a suite, and what it runs.
limit()
{
	echo $((seconds_of[$1] * SLACK + share))
}

command()
{
	printf 'export SLACK=%s' "$SLACK"
	[ $share = 0 ] || printf ' MINUTES=%s TORTURE_SECS=%s' "$MINUTES" "$share"
	printf '; %s' "${command_of[$1]}"
}

# What the guest runs: the suites of a boot, each in a shell of its own.
guest_script()
{
	local name text
	for name; do
		text=$(command "$name")
		cat <<-END
			export OUT=$BUILD/out/$1/$name; mkdir -p "\$OUT"
			echo; echo "@@ begin $name"; from=\$SECONDS rc=0
			timeout -k 10 $(limit "$name") bash -c ${text@Q} || rc=\$?
			echo; echo "@@ end $name \$rc \$((SECONDS - from))"
			find /tmp -xdev -mindepth 1 -delete 2>/dev/null
		END
	done
	echo "exit \$rc"
}

# kernel_of NAME: series and variant of the kernel that a suite needs, if it is for another series
kernel_of()
{
	local where=${where_of[$1]#[~!]} variant
	[[ $where == */* ]] || return 0
	variant=${where#*/}
	variant=${variant%%:*}
	[ "$variant" != host ] || variant=patched
	echo "${where%%/*} $variant"
}

kernels()
{
	local name
	for name in "${jobs[@]}"; do
		kernel_of "$name"
	done | sort -uV
}

# skip_job NAME...: as a boot frames them, without the source of its kernel: see build-newer.sh
skip_job()
{
	local name
	for name; do
		printf '@@ begin %s\nok 1 # SKIP the source of Linux %s was not fetched\n' \
			"$name" "$BASE"
		printf '@@ end %s 0 0\n' "$name"
	done
}

# run_job NAME...: in the place of this shell
run_job()
{
	local where=${where_of[$1]#[~!]} variant accel smp name seconds=$((60 * SLACK)) mem=''
	cd "$TOP"
	if [[ $where == */* ]]; then
		read -r BASE variant < <(kernel_of "$1")
		export BASE
		export BUILD=$TOP/build/$BASE
		where=${where#*/}
		if [ ! -f "$BUILD/$variant/bzImage" ]; then
			skip_job "$@"
			exit
		fi
	fi
	export OUT=$BUILD/out/$1
	mkdir -p "$OUT"
	if [ "$where" = host ]; then
		exec timeout -k 10 "$(limit "$1")" bash -c "$(command "$1")"
	fi
	IFS=: read -r variant accel smp <<<"$where"
	for name; do
		seconds=$((seconds + $(limit "$name")))
	done
	# 10,000 threads do not fit into the 1.5 GiB of make test.
	[ "$variant" != debug ] || [ "${MINUTES:-0}" = 0 ] || mem=3G
	VARIANT=$variant ACCEL=${accel:-single} SMP=${smp:-2} TIMEOUT=$seconds \
		CMD=$(guest_script "$@") MEM=$mem APPEND='' ICOUNT='' \
		exec "$TOP/tools/testing/vm/vm.sh"
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

# judge NAME STATUS [CPU]: count a suite's TAP lines; say what failed and what was skipped,
# and why.
judge()
{
	local name=$1 rc=$2 log=$LOGS/$1.log ok bad skip
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
	printf '%-28s %4d passed %3d failed %3d skipped  %4d s%s\n' \
		"$name" "$ok" "$bad" "$skip" "${took[$name]}" "${3:+, $3 s of CPU}"
	passed=$((passed + ok)) failed=$((failed + bad)) skipped=$((skipped + skip))
}

# Take a boot's output apart, and judge each suite. The boot itself, from power on to the
# end, is a part of the first one's time.
judge_boot()
{
	local first=$1 rc=$2 cpu=$3 boot=$LOGS/$1.boot name status secs names=() others=0 lost=
	local -A status_of=()
	read -ra names <<<"${members[$first]}"
	for name in "${names[@]}"; do
		sed -n "/^@@ begin $name\$/,/^@@ end $name /{/^@@ /!p}" "$boot" >"$LOGS/$name.log"
		read -r status secs < \
			<(sed -nE "s/^@@ end $name ([0-9]+ [0-9]+)\r?$/\1/p" "$boot") || lost=1
		if [ -z "$status" ]; then
			status=$((rc ? rc : 98))
			[ -s "$LOGS/$name.log" ] ||
				grep '^vm\.sh: ' "$boot" >"$LOGS/$name.log" || true
		fi
		status_of[$name]=$status
		took[$name]=${secs:-0}
		others=$((others + took[$name]))
	done
	took[$first]=$((took[$first] + SECONDS - started[$first] - others))
	for name in "${names[@]}"; do
		judge "$name" "${status_of[$name]}" "$cpu"
		cpu=
	done
	# The boot's status is the last suite's, or the machine's.
	if [ -z "$lost" ] && [ "$rc" != "${status_of[$name]}" ]; then
		failed=$((failed + 1))
		tac "$boot" | sed '/^@@ end /,$d' | tac | tail -n 15 | sed 's/^/    | /'
		complain "  the boot of ${names[*]} ended with status $rc: $(tail -n1 "$boot")"
	fi
}

# The CPU time of the job that has ended last, in seconds; sets $cpu
cpu_of_last()
{
	local user sys now
	times >"$LOGS/.times"
	read -r user sys < <(tail -n1 "$LOGS/.times" | sed -E 's/m/*60+/g; s/[.,][0-9]*s//g')
	now=$((user + sys))
	cpu=$((now - cpu_before))
	cpu_before=$now
}

# What the build beside the suites has come to. Where it failed, those that need it do not run.
judge_beside()
{
	local name left=() dropped=
	beside=
	if [ "$1" = 0 ]; then
		say "built beside the suites in $((SECONDS - started[beside])) s," \
		    "$2 s of CPU: $BESIDE"
		return
	fi
	for name in "${jobs[@]}"; do
		if [ -n "$(kernel_of "$name")" ]; then
			dropped+=" ${members[$name]% }"
		else
			left+=("$name")
		fi
	done
	jobs=("${left[@]}")
	failed=$((failed + 1))
	tail -n 15 "$LOGS/beside.log" | sed 's/^/    | /'
	complain "  $BESIDE ended with status $1, so these did not run:$dropped"
	echo "  the whole output is $LOGS/beside.log"
}

# Wait until a job has ended.
wait_for_one()
{
	local pid name rc=0 cpu
	wait -n -p pid "${!running[@]}" || rc=$?
	cpu_of_last
	name=${running[$pid]}
	unset "running[$pid]"
	used=$((used - $(weight "$name")))
	if [ "$name" = beside ]; then
		judge_beside "$rc" "$cpu"
	elif [[ ${where_of[$name]} == *host ]]; then
		took[$name]=$((SECONDS - started[$name]))
		judge "$name" "$rc" "$cpu"
	else
		judge_boot "$name" "$rc" "$cpu"
	fi
}

# The first job that waits for no build; sets $next to its place in the list
next_job()
{
	for next in "${!jobs[@]}"; do
		[ -n "$beside" ] && [ -n "$(kernel_of "${jobs[next]}")" ] || return 0
	done
	return 1
}

# has_room NAME: beside what runs
has_room()
{
	local room=$ROOM
	[ -n "$beside" ] || room=$((ROOM + 1))
	[ $used = 0 ] || [ $((used + $(weight "$1"))) -le "$room" ]
}

# Start what other series need, if a suite needs it. timeout, here without a limit, is the leader
# of a process group: all that the build has started ends with it.
start_beside()
{
	[ -n "${BESIDE-}" ] && [ -n "$(kernels)" ] || return 0
	beside=1 started[beside]=$SECONDS where_of[beside]=beside
	timeout -k 10 0 nice -n 19 bash -c "$BESIDE" >"$LOGS/beside.log" 2>&1 </dev/null &
	running[$!]=beside
}

start_job()
{
	local name=$1 log names
	read -ra names <<<"${members[$name]}"
	log=$LOGS/$name.boot
	[[ ${where_of[$name]} != *host ]] || log=$LOGS/$name.log
	started[$name]=$SECONDS
	run_job "${names[@]}" >"$log" 2>&1 </dev/null &
	running[$!]=$name
	used=$((used + $(weight "$name")))
}

longest()
{
	local name
	for name in "${!took[@]}"; do
		echo "${took[$name]} $name"
	done | sort -k1,1nr -k2 | head -n5 | awk '{ printf "%s%s %d s", n++ ? ", " : "", $2, $1 }'
}

main()
{
	local next begin=$SECONDS
	read_list
	if [ "${1-}" = --kernels ]; then
		kernels
		return
	fi
	mkdir -p "$LOGS"
	[ -z "${MINUTES:-}" ] || share=$((MINUTES * 60 / (sharing ? sharing : 1)))
	trap 'trap - EXIT; kill -- "${!running[@]}" 2>/dev/null || true' EXIT
	trap 'exit 130' INT TERM
	start_beside
	while [ ${#jobs[@]} -gt 0 ]; do
		if ! next_job || ! has_room "${jobs[next]}"; then
			wait_for_one
			continue
		fi
		start_job "${jobs[next]}"
		unset "jobs[next]"
	done
	while [ ${#running[@]} -gt 0 ]; do
		wait_for_one
	done
	trap - EXIT
	echo "tests took $((SECONDS - begin)) s, $((cpu_before)) s of CPU"
	echo "the longest: $(longest)"
	[ ${#complaints[@]} = 0 ] || printf '%s\n' 'What failed:' "${complaints[@]}"
	echo "$passed passed, $failed failed, $skipped skipped"
	[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
}

main "$@"
