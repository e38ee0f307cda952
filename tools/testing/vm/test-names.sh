#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# What has names after a reset that leaves no table of tasks: a program that started right
# before, a module, and the kernel, each of whose two boots is at another random address. The
# session is one that the kernel has started, without side-band; a flight recorder that reads it
# keeps its notes.
#
# usage: test-names.sh			on the host
#	 test-names.sh guest		in the guest
#
# The kernel may be placed over what the last boot left, or in the way of the region, which then
# lies elsewhere: once in 25 runs. Nothing is found after that, and it is tried again.
set -uo pipefail
# shellcheck source=tools/testing/vm/test-blackbox.sh
. "${BASH_SOURCE[0]%/*}/test-blackbox.sh"

BOOTS=2
# shellcheck disable=SC2054 # the commas are the parameters'
PARAMS=(
	reserve_mem=16M:4096:box
	perf_persistent=box:cpu-clock:1M@box
)
MODULE=$BUILD/patched/test_modules/perf_stall.ko
BASE_PERF=$BUILD/base/bin/perf
HOT_FUNCTION=story_hot_function
TRACING=/sys/kernel/tracing

# The child that keeps the notes listens to changes before it stores the first note.
keeps_notes()
{
	KEEPER=$(pgrep -P "$1" | head -n1)
	[ -n "$KEEPER" ] && grep -q perf_event "/proc/$KEEPER/maps"
}

# start_recorder NAME: sets RECORDER, and KEEPER when that listens
start_recorder()
{
	perf record -M 16M -e persistent/box/ -o "/tmp/$1.data" >"/tmp/$1.said" 2>&1 &
	RECORDER=$!
	eventually 300 keeps_notes $RECORDER || { cat "/tmp/$1.said"; return 1; }
}

starts_recorder()
{
	insmod "$MODULE" && start_recorder flight || return
	sleep 3
	! grep 'Programs that start\|[Nn]otes of session' /tmp/flight.said
}

# The keeper has no file of the recorder's, which polls eventfds. It dies with the recorder,
# however that ends.
dies_with_recorder()
{
	local signal files
	for signal in KILL INT; do
		start_recorder $signal || return
		files=$(ls -l "/proc/$KEEPER/fd")
		echo "$files"
		grep -c perf_event <<<"$files" || return
		! grep -E 'eventpoll|eventfd' <<<"$files" || return
		files=$(ls -l "/proc/$RECORDER/fd")
		grep -c eventfd <<<"$files" || return
		kill -$signal "$RECORDER"
		eventually 300 is_gone "$KEEPER" || return
	done
}

# The recorder goes on without it.
survives_keeper()
{
	start_recorder alone || return
	kill -KILL "$KEEPER"
	sleep 1
	kill -USR1 "$RECORDER" && eventually 300 grep 'dump /tmp/alone.data' /tmp/alone.said &&
		kill -INT "$RECORDER" && eventually 300 is_gone "$RECORDER"
}

# keeps_session: of the recorder's children, one has the session "other" open
keeps_session()
{
	local id

	KEEPER=$(pgrep -P "$RECORDER" | head -n1)
	id=$(cat $DEVICE/sessions/other/id)
	[ -n "$KEEPER" ] && grep -hx "perf_persistent_session:[[:space:]]*$id" \
		"/proc/$KEEPER"/fdinfo/*
}

make_other()
{
	perf record -q -P other "$@" --reserve box -m 16K -e cpu-clock -C 0
}

# Each time that notes are about to be stored, from here on
traces_notes()
{
	mountpoint -q "$TRACING" || mount -t tracefs none "$TRACING"
	# shellcheck disable=SC2016 # $arg1 is the kernel's
	echo 'p:notes perf_blackbox_ioctl of=$arg1:x64 flags=+u4($arg3):u32' \
		>"$TRACING/kprobe_events" && echo 1 >"$TRACING/events/kprobes/notes/enable"
}

# stores_all SESSIONS TIMES: the keeper has stored notes with so many sessions; with the last one
# so often all of them, and not only what was added
stores_all()
{
	awk -v sessions="$1" -v times="$2" -v keeper="-$KEEPER\$" '
		$1 ~ keeper && $NF == "flags=0" { last = $(NF - 1); nr += !stored[last]++ }
		END { exit !(nr >= sessions && stored[last] >= times) }' "$TRACING/trace"
}

# At once, although nothing happens that it would have to add. (Such a session has side-band, and
# the keeper does not listen.)
keeps_another()
{
	local id keeper
	make_other || return
	perf record -M 16M -e persistent/other/ -o /tmp/other.data >/tmp/other.said 2>&1 &
	RECORDER=$!
	echo $RECORDER >/tmp/other.pid
	eventually 300 keeps_session || { cat /tmp/other.said; return 1; }
	eventually 300 stores_all 1 1 || { cat "$TRACING/trace"; return 1; }
	id=$(cat $DEVICE/sessions/other/id) keeper=$KEEPER
	make_other --replace && [ "$(cat $DEVICE/sessions/other/id)" != "$id" ] || return
	eventually 300 keeps_session || { cat /tmp/other.said; return 1; }
	[ "$KEEPER" = "$keeper" ] && grep "session 'other' was replaced" /tmp/other.said
}

# The notes are stored again with the formats of events that the session gets: 10 s later at most.
# It is their last change before the reset.
notes_added_events()
{
	KEEPER=$(pgrep -P "$(cat /tmp/other.pid)" | head -n1)
	# Not to be taken for those of the events that follow
	eventually 300 stores_all 2 1 || { cat "$TRACING/trace"; return 1; }
	perf record -q -P other --add -m 16K -e sched:sched_process_exit -C 0 || return
	eventually 300 stores_all 2 2 || { cat "$TRACING/trace"; return 1; }
	grep "session 'other' got 1 events more" /tmp/other.said || return
	kill -KILL "$(cat /tmp/other.pid)"
	[ -n "$KEEPER" ] && eventually 300 is_gone "$KEEPER" && taskset 1 /bin/true
}

# Its /proc has other pids, and would replace what is right.
is_not_in_container()
{
	local unshare
	unshare --pid --fork --mount-proc perf record -M 16M -e persistent/box/ \
		-o /tmp/container.data >/tmp/container.said 2>&1 &
	unshare=$!
	eventually 300 grep -q 'flight recorder [0-9]' /tmp/container.said ||
		{ cat /tmp/container.said; return 1; }
	RECORDER=$(pgrep -P $unshare)
	# Another child writes what is auxiliary.
	sleep 5
	! keeps_notes "$RECORDER" || return
	kill -INT "$RECORDER" && eventually 300 is_gone $unshare
}

boot_1()
{
	grep -w _text /proc/kallsyms >"$OUT/text.1"
	region >"$OUT/region"
	tap_run "the session records in the region" test -e $DEVICE/sessions/box
	tap_run "the keeper of the notes dies with its recorder" dies_with_recorder
	tap_run "the recorder goes on without it" survives_keeper
	traces_notes
	tap_run "it follows a session that is replaced" keeps_another
	tap_run "and one that gets events" notes_added_events
	tap_run "there is none in another pid namespace" is_not_in_container
	tap_run "a recorder keeps its notes" starts_recorder
}

# What the recorder's child adds has 0.1 s to get there.
death_1()
{
	taskset 1 "$OUT/latecomer" 100 >/dev/null 2>&1 &
	sleep 1.5
	taskset 2 sh -c 'echo preempt 1000 >/dev/perf_stall'
	sleep 0.5
	echo b >/proc/sysrq-trigger
}

# Where this boot records
region()
{
	dmesg | sed -nE "s/.*'box': recording to [0-9]+ KiB at (0x[0-9a-f]+),.*/\1/p"
}

# The region lies elsewhere, or the new kernel lies over that of the old one.
is_lost()
{
	local old new from to
	old=$(($(cat "$OUT/region")))
	new=$(($(region)))
	printf 'region at 0x%x, before at 0x%x\n' "$new" "$old"
	grep ' Kernel ' /proc/iomem
	[ "$new" = "$old" ] || return 0
	while IFS=- read -r from to; do
		[ $((0x$from)) -ge $((old + (16 << 20))) ] || [ $((0x$to)) -lt "$old" ] || return 0
	done < <(awk '/ Kernel (code|rodata|data|bss)$/ { print $1 }' /proc/iomem)
	return 1
}

recovers_box()
{
	[ -n "$1" ] || { is_lost; dmesg | grep perf_persistent; return 1; }
	perf data recover -f -o /tmp/box.data --session box --last "$1" || return 1
	jq '{events, unresolved, kernel}' /tmp/box.data.json
}

# samples OPTION...: of the recording, without what perf complains of
samples()
{
	if ! "$BASE_PERF" script -i /tmp/box.data "$@" >/tmp/samples 2>/tmp/complaints ||
	   [ ! -s /tmp/samples ]; then
		head /tmp/complaints
		head -n 60 /tmp/box.data.json
		return 1
	fi
}

# None of its samples is without a name, and none in its own code has that of what it was before,
# although all of this was stored later.
names_latecomer()
{
	local pid
	samples -F comm,pid,ip,sym,dso -G || return 1
	pid=$(awk '$1 == "latecomer" { print $2; exit }' /tmp/samples)
	if [ -z "$pid" ] || grep -m1 -E "^ *:$pid +$pid " /tmp/samples ||
	   grep -F "($OUT/latecomer)" /tmp/samples | grep -m1 -vE '^ *latecomer '; then
		awk '{ print $1 }' /tmp/samples | sort | uniq -c | sort -rn | head
		return 1
	fi
	grep -m1 -E "^ *latecomer +$pid +[0-9a-f]+ $HOT_FUNCTION \\($OUT/latecomer\\)" /tmp/samples
}

# What a tracepoint tells is read by its format.
reads_added_events()
{
	perf data recover -f -o /tmp/other.data --session other --last "$1" || return 1
	ls /tmp/other.data*
	"$BASE_PERF" script -i /tmp/other.data -F event,trace >/tmp/samples 2>/tmp/complaints
	grep -m3 -E 'sched:sched_process_exit: *comm=[a-z]' /tmp/samples ||
		{ head /tmp/complaints /tmp/samples; return 1; }
}

# It is not loaded in this boot.
names_module()
{
	"$BASE_PERF" buildid-cache -a "$MODULE" && samples -F ip,sym,dso -G || return 1
	grep -m1 -E ' stall_(spin|preempt)(\.[a-z0-9.]+)? \(.*perf_stall' /tmp/samples ||
		{ grep -m5 perf_stall /tmp/samples; return 1; }
}

# By the symbols of this boot, whose kernel is the same one at another address
names_kernel()
{
	samples -F ip,sym,dso -G || return 1
	cat "$OUT/text.1"
	grep -w _text /proc/kallsyms
	grep -m1 -E ' (default_idle|pv_native_safe_halt|acpi_safe_halt|do_syscall_64) \(\[kernel' \
		/tmp/samples &&
		! grep -m1 -E '\[unknown\] \(\[kernel.kallsyms' /tmp/samples
}

boot_2()
{
	local image
	image=$(perf ctl -l | awk '$1 ~ /^box\./ && $3 == "yes" { print $1 }')
	if [ -z "$image" ] && is_lost >/dev/null; then
		tap_skip "names after a reset" "KASLR has moved the region, or the kernel into it"
		ask stop
		return
	fi
	tap_run "the reset is recovered" recovers_box "$image"
	tap_run "events that were added have their formats" reads_added_events "$image"
	tap_run "a program that started since the last full note has its name" names_latecomer
	tap_run "functions of a module have their names" names_module
	tap_run "functions of a kernel at another address have their names" names_kernel
	ask stop
}

if [ "${1-}" = guest ]; then
	guest
else
	export OUT=${OUT:-$BUILD/out/names} TIMEOUT=${TIMEOUT:-$((60 * ${SLACK:-5}))} KASLR=1
	mkdir -p "$OUT"
	# Without a dynamic linker, it is in its own code at once: long before that is stored.
	gcc -static -O1 -fno-inline -Wall -Wextra -Werror -o "$OUT/latecomer" \
		"$TOP/tools/testing/vm/story-hot.c"
	for _ in 1 2 3; do
		rc=0
		# host() exits if it fails.
		(host) >"$OUT/said" || rc=$?
		grep -q '# SKIP' "$OUT/said" || break
	done
	cat "$OUT/said"
	exit "$rc"
fi
