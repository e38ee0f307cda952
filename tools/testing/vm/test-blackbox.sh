#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A machine that dies under load, again and again, and what the next boot finds of it in the
# region of a black box. All boots are of one machine: a warm reset keeps its memory.
#
# usage: test-blackbox.sh		on the host
#	 test-blackbox.sh tools		on the host: which commands read what is recovered
#	 test-blackbox.sh kexec		on the host: kexec into a kernel with a larger region
#	 test-blackbox.sh handover	on the host: kexec that hands the region over, with BASE=7.3
#	 test-blackbox.sh guest		in the guest; "guest tools" and the others likewise
#
# The boots, and how each of them ends:
#
#	1  panic in a task		box.0 is written, and spare.0, which is no death
#	2  reset from outside		box.1
#	3  orderly restart		both are full: no session; box.1 is released
#	4  orderly restart		box.1
#	5  panic in an NMI		box.1 again; box.0 is released
#	6  triple fault			box.0
#	7  panic, and what comes after	sessions are placed by perf, after a release
#	8  the end
#
# At each death QEMU pauses the machine, saves the half of the region, and resets it then.
#
# In the last one, blackbox_late acts between the last act of the kernel and the stop of its CPU.
# Emulation on one thread lets each CPU run for a tenth of a second: the time in between is made
# longer than that by printk_delay.
#
# With "tools" there are two: a panic, and the end. With "kexec" there are three: a panic, kexec,
# and the end. With "handover" there are four: a panic, kexec, a panic, and the end.
#
# The results are in a file of the host's, as a machine that dies loses what it is about to
# print. The guest asks the host for what only the host can do, by lines that begin with
# "@host".
set -uo pipefail
# shellcheck source=tools/testing/vm/lib.sh
. "${BASH_SOURCE[0]%/*}/lib.sh"
# shellcheck source=tools/testing/vm/tap.sh
. "${BASH_SOURCE[0]%/*}/tap.sh"

DEVICE=/sys/bus/event_source/devices/persistent
LAST=$DEVICE/last
UNITS=$TOP/tools/perf/examples/flight
SELFTESTS=$BUILD/patched/selftests
# The buffers of system calls are overwritten many times a second; those of names are not. Kernels
# that are newer than 6.12 hand a panic of CPU 1 over to CPU 0.
# shellcheck disable=SC2054 # the commas are the parameters'
PARAMS=(
	reserve_mem=8M:4096:box
	reserve_mem=64K:4096:tiny
	reserve_mem=1M:4096:spare
	reserve_mem=64K:4096:hidden
	reserve_mem=256K:4096:oops
	ramoops.mem_name=oops
	perf_persistent=box:raw_syscalls:sys_enter,task:task_rename,printk:console:64K@box
	perf_persistent=brief:task:task_rename:4K@box
	perf_persistent=large:cpu-clock:16M@box
	perf_persistent=small:cpu-clock@tiny
	perf_persistent=nowhere:cpu-clock@no_such_label
	perf_persistent=@spare
	perf_persistent=@no_such_region
	unknown_nmi_panic
	panic_force_cpu=0
	nokaslr
)
BOOTS=8
SCENE=
WAITS=sched:sched_switch,sched:sched_waking,sched:sched_wakeup,sched:sched_wakeup_new
WAITS+=,sched:sched_stat_runtime,lock:contention_begin,lock:contention_end
WAITS+=,raw_syscalls:sys_enter,raw_syscalls:sys_exit
if [[ " $* " == *" tools "* ]]; then
	BOOTS=2 SCENE=tools_
	PARAMS=(
		reserve_mem=16M:4096:box
		"perf_persistent=waits:$WAITS:256K@box"
		nokaslr
	)
fi

if [[ " $* " == *" kexec "* ]]; then
	BOOTS=3 SCENE=kexec_
	# shellcheck disable=SC2054 # the commas are the parameters'
	PARAMS=(
		reserve_mem=8M:4096:box
		perf_persistent=box:raw_syscalls:sys_enter,task:task_rename,printk:console:64K@box
		nokaslr
	)
fi

if [[ " $* " == *" handover "* ]]; then
	BOOTS=4 SCENE=handover_
	# shellcheck disable=SC2054 # the commas are the parameters'
	PARAMS=(
		reserve_mem=8M:4096:box
		perf_persistent=box:raw_syscalls:sys_enter,task:task_rename,printk:console:64K@box
		kho=on
		nokaslr
	)
fi

# What the reader says of an image of the last boot, with the marker of boot $2
read_image()
{
	"$SELFTESTS/blackbox_read" -t -f "marker-$2-" -f "message-$2-" \
		-f "Kernel panic - not syncing" "$LAST/$1" >/tmp/text || {
		cat /tmp/text
		return 1
	}
}

# Boot $2 has left box.$1, in the state $3: every record is whole, in order, of a known event
# and, in each buffer, there are some. The marker was recorded right before the end.
finds()
{
	read_image "box.$1" "$2" || return 1
	if ! grep -qx "state $3" /tmp/text || ! grep -qx 'session 0 box' /tmp/text ||
	   [ "$(grep -c '^buffer .* records [1-9]' /tmp/text)" != 6 ] ||
	   [ "$(grep -c '^event ' /tmp/text)" != 6 ] ||
	   ! grep -qE "^found [1-9][0-9]* marker-$2-" /tmp/text ||
	   ! grep -qE "^found [1-9][0-9]* message-$2-" /tmp/text; then
		cat /tmp/text
		return 1
	fi
}

# The reason, the CPU if it is known, and the names of those that died with the machine
tells_death()
{
	grep "^death kind 1 cpu ${2:-[0-9]*} .* reason $1" /tmp/text || {
		grep '^death' /tmp/text
		return 1
	}
	grep -qx 'task 1 1 init' /tmp/text && grep -qE '^task [0-9]+ [0-9]+ load$' /tmp/text &&
		grep -qE '^task 2 2 kthreadd kernel$' /tmp/text
}

# No record is newer than the death. $1: the clock of the records, mono or perf's
ends_with_death()
{
	awk -v clock="${1:-time}" '
	     /^death/ { for (i = 1; i < NF; i++) if ($i == clock) death = $(i + 1) }
	     /^buffer/ { for (i = 1; i < NF; i++) if ($i == "newest" && $(i + 1) > death) bad = 1 }
	     END { exit bad || !death }' /tmp/text || { cat /tmp/text; return 1; }
}

tells_no_death()
{
	! grep '^death' /tmp/text
}

# The buffers were paused before the kernel printed why it panics: that is not in them, but counts
# as lost in one of those of messages.
pauses_first()
{
	if [ "$(grep -c '^state of .* paused 1 nest [01] ' /tmp/text)" != 6 ] ||
	   ! grep -q '^state of .* lost [1-9]' /tmp/text ||
	   ! grep -qx 'found 0 Kernel panic - not syncing' /tmp/text; then
		grep -E '^(state of|found)' /tmp/text
		return 1
	fi
}

# Nothing was paused, and nothing lost, when the machine was reset from outside.
pauses_nothing()
{
	[ "$(grep -c '^state of .* paused 0 nest [01] lost 0$' /tmp/text)" = 6 ] || {
		grep '^state of' /tmp/text
		return 1
	}
}

notes_are_there()
{
	grep -A3 '^notes of box: base number' /tmp/text | tail -n3 >/tmp/notes
	printf '%s\n' 'base 10 newer base' 'addition 9 newer one' 'addition 9 newer two' |
		diff - /tmp/notes
}

is_same()
{
	cmp "$LAST/$1" "$2"
}

# There are exactly these images.
holds()
{
	local image
	for image; do
		printf '%s\n' "$image" "$image.release"
	done | diff - <(cd $LAST && printf '%s\n' box.*)
}

holds_nothing()
{
	[ ! -d $LAST ] || [ -z "$(ls $LAST)" ]
}

is_recording()
{
	[ "$(cat $DEVICE/sessions/box/state)" = 0 ] &&
		dmesg | grep "perf_persistent: region 'box': recording to 4096 KiB"
}

is_refused()
{
	[ ! -e $DEVICE/sessions/box ] &&
		dmesg | grep "perf_persistent: region 'box' is full of what kernels left" &&
		dmesg | grep -E 'cannot start perf_persistent=box:.*: -(EBUSY|16)'
}

errors_are_told()
{
	dmesg | grep "perf_persistent: there is no region 'no_such_label'" &&
		dmesg | grep -E 'cannot start perf_persistent=nowhere:.*: -(ENODEV|19)' &&
		dmesg | grep -E 'the region of perf_persistent=@no_such_region: -(ENODEV|19)' &&
		dmesg | grep "perf_persistent: region 'tiny' is too small" &&
		dmesg | grep -E 'cannot start perf_persistent=small:.*: -(ENOSPC|28)' &&
		dmesg | grep "region 'box' has no room for a buffer of 16384 KiB" &&
		dmesg | grep -E 'cannot start perf_persistent=large:.*: -(ENOSPC|28)' &&
		[ "$(ls $DEVICE/sessions)" = box ]
}

# read_as SETPRIV-OPTION...: the reader opens the file itself
read_as()
{
	setpriv "$@" head -c 8 $LAST/box.0 >/tmp/magic && [ "$(cat /tmp/magic)" = PERFBBOX ]
}

# Not for ordinary users, even if the mode of the file let them, and not for root without one of
# the capabilities. The opener counts, not the one who reads.
is_refused_to_others()
{
	local nobody=(--reuid=65534 --clear-groups) cap
	! read_as "${nobody[@]}" || return 1
	chmod 444 $LAST/box.0
	! read_as "${nobody[@]}" || return 1
	chmod 400 $LAST/box.0
	read_as --bounding-set=-net_raw || return 1
	for cap in perfmon sys_admin; do
		! read_as --bounding-set=-$cap || return 1
	done
	exec 4<$LAST/box.0
	setpriv "${nobody[@]}" head -c 8 <&4 >/tmp/magic
	exec 4<&-
	[ "$(cat /tmp/magic)" = PERFBBOX ] || return 1
	for cap in perfmon sys_admin; do
		! setpriv --bounding-set=-$cap bash -c \
			"exec 4<$LAST/box.0 && exec setpriv --bounding-set=-net_raw \
				head -c 8 <&4" ||
			return 1
	done
	! setpriv --bounding-set=-sys_admin bash -c "echo 1 >$LAST/box.0.release" || return 1
	! setpriv --bounding-set=-net_raw bash -c "echo 0 >$LAST/box.0.release" || return 1
	read_image box.0 1 && grep -x 'state dead' /tmp/text
}

is_gone()
{
	! kill -0 "$1" 2>/dev/null
}

# as_unit UNIT COMMAND...: with the capabilities and the environment that the unit gives to it
as_unit()
{
	local caps
	caps=$(sed -n 's/^CapabilityBoundingSet=//p' "$UNITS/$1" | tr '[:upper:]' '[:lower:]' |
		sed 's/cap_/+/g; s/ /,/g')
	[ -n "$caps" ] &&
		env -u HOME setpriv --no-new-privs --bounding-set="-all,$caps" "${@:2}"
}

# The notes of a session end with it: what has its file open does not keep it.
notes_end_with_session()
{
	local pid
	as_unit perf-flight-note@.service perf data note --every 1 brief >/tmp/every 2>&1 &
	pid=$!
	if ! eventually 300 grep -q 'stored [1-9][0-9]* bytes with session brief' /tmp/every ||
	   ! perf ctl -d brief || ! eventually 300 is_gone $pid || ! wait $pid ||
	   ! grep -x 'Session brief has ended.' /tmp/every; then
		cat /tmp/every
		kill $pid 2>/dev/null
		return 1
	fi
}

# After a reset there is no table of tasks: only the notes of perf name them.
names_by_notes()
{
	perf data recover -q -o /tmp/noted.data --last "$1" || return 1
	"$BUILD/base/bin/perf" script -i /tmp/noted.data -F comm,event >/tmp/samples \
		2>/tmp/complaints || { cat /tmp/complaints; return 1; }
	grep -c '^ *load .*raw_syscalls:sys_enter' /tmp/samples
}

# Both deaths become recordings, and are released; the second time, nothing is done.
unit_recovers()
{
	local dir
	unit_starts && says_twice 'released box' && lists_both_released &&
		unit_starts && says_twice 'was recovered to .* before' || return
	for dir in /tmp/var/box.*; do
		"$BUILD/base/bin/perf" script -i "$dir/perf.data" -F event 2>/tmp/complaints |
			grep -c raw_syscalls:sys_enter || { ls "$dir"; return 1; }
	done
}

unit_starts()
{
	as_unit perf-flight-recover.service "$UNITS/recover-blackbox.sh" perf /tmp/var \
		>/tmp/unit 2>&1 || { cat /tmp/unit; return 1; }
}

says_twice()
{
	[ "$(grep -c "$1" /tmp/unit)" = 2 ] || { cat /tmp/unit; return 1; }
}

lists_both_released()
{
	[ "$(perf ctl -l --json | grep -c '"state": "released", "death": false')" = 2 ]
}

release()
{
	echo 1 >"$LAST/$1.release" && read_image "$1" 0 && grep -x 'state released' /tmp/text
}

# The records that fit into a buffer beside 5000 bytes that a writer has reserved: whole, in
# order, and as new as before.
reader_cuts()
{
	"$SELFTESTS/blackbox_read" -d 5000 -o /tmp/cut "$OUT/image" >/tmp/before || return 1
	"$SELFTESTS/blackbox_read" /tmp/cut >/tmp/after || { cat /tmp/after; return 1; }
	paste -d' ' <(grep '^buffer' /tmp/before) <(grep '^buffer' /tmp/after) | awk '
		{ print }
		# nr cpu records bytes behind newest: the columns of the first, and of the second
		$8 > 60000 { full++; if ($22 > $8 - 4900 || $12 != $26) bad = 1 }
		END { exit bad || full < 2 }'
}

# perf of the base opens what perf data recover writes: a sample for each record that the reader
# of the selftests has found, and names.
recovers()
{
	local nr
	perf data recover -q -o /tmp/box.data --last box.0 || return 1
	"$BUILD/base/bin/perf" script -i /tmp/box.data -F comm,tid,cpu,event >/tmp/samples \
		2>/tmp/complaints || { cat /tmp/complaints; return 1; }
	# The column of a buffer with its number of records
	nr=$(awk '/^buffer/ { for (i = 1; i < NF; i++) if ($i == "records") n += $(i + 1) }
		  END { print n }' /tmp/text)
	echo "$nr records, $(wc -l </tmp/samples) samples"
	[ "$nr" -gt 1000 ] && [ "$(wc -l </tmp/samples)" = "$nr" ] &&
		grep -q '^ *load .*raw_syscalls:sys_enter' /tmp/samples &&
		grep 'sysrq triggered crash' /tmp/box.data.json
}

# perf ctl lists exactly these images: NAME DEATH STATE, and for others than root only the names.
lists()
{
	perf ctl -l >/tmp/list || return 1
	cat /tmp/list
	if [ $# = 0 ]; then
		! grep -E 'LAST BOOT|recover' /tmp/list
		return
	fi
	printf '%s\n' "$@" |
		diff - <(sed '1,/^LAST BOOT/d; /^Recover/,$d; /^spare/d' /tmp/list |
			awk '{ print $1, $3, $4 }') &&
		grep -xF 'Recover what was recorded: perf data recover -o FILE' /tmp/list
}

# The size and the rest are those of the image; others than root learn no more than the size.
lists_death()
{
	local size others=(setpriv --reuid=65534 --regid=65534 --clear-groups)
	lists "box.0 yes dead" &&
		grep -E "^box.0 .* $(uname -r) +20[0-9T]+\.[0-9]{3}Z +sysrq triggered crash$" \
			/tmp/list ||
		return 1
	size=$(stat -c %s $LAST/box.0)
	"${others[@]}" "$(command -v perf)" ctl -l >/tmp/others || return 1
	cat /tmp/others
	grep -xE "box.0 +$size +- +- +- +- +-" /tmp/others &&
		setpriv --bounding-set=-perfmon "$(command -v perf)" ctl -l |
			grep -xE "box.0 +$size( +-){5}"
}

# ask WHAT...: have the host do it, and wait until it is done
ask()
{
	local tries
	rm -f "$OUT/answer"
	echo "@host $*" >&3
	for ((tries = 0; tries < 6000; tries++)); do
		[ ! -e "$OUT/answer" ] || return 0
		sleep 0.1
	done
	return 1
}

# The image of this boot is to be saved at the next reset, whatever causes it.
watch_death()
{
	ask watch "$(dmesg |
		sed -nE "s/.*'box': recording to [0-9]+ KiB at (0x[0-9a-f]+),.*/\1/p" | tail -n1)"
}

reserve_errors()
{
	says "There is no region 'hidden' for persistent sessions: boot with reserve_mem=" \
		-P x --reserve hidden &&
		says 'has no room for .* KiB in .* buffers and for notes: use' -P x --reserve box \
			-m 16M &&
		says 'at most 1 GiB' -P x --reserve box -m 2G &&
		says 'is not the label of a reserved region' -P x --reserve sixteen_letters_ &&
		says '--reserve require -P' --reserve box &&
		perf record -q -P x -e cpu-clock -C 0 &&
		says "'x' does not lie in the region 'box'" -P x --add --reserve box &&
		perf ctl -d x
}

# says PATTERN OPTION...: perf record fails with that message, and leaves no session
says()
{
	local status
	perf record "${@:2}" -e cpu-clock -a >/tmp/said 2>&1
	status=$?
	if [ $status = 0 ] || ! grep -E -e "$1" /tmp/said; then
		echo "perf record ${*:2}: status $status"
		cat /tmp/said
		return 1
	fi
}

# A session that perf makes lies in the region, has notes, and is listed with it.
reserves()
{
	perf record -P "$1" --reserve box -m 64K \
		-e raw_syscalls:sys_enter,task:task_rename,printk:console -a 2>/tmp/made || {
		cat /tmp/made
		return 1
	}
	cat /tmp/made
	grep -E 'stored [1-9][0-9]* bytes with session' /tmp/made &&
		grep 'for side-band) in region box' /tmp/made &&
		[ "$(cat "$DEVICE/sessions/$1/region")" = box ] &&
		perf ctl -l --json | grep "\"$1\".*\"region\": \"box\""
}

reserves_again()
{
	perf record -q -P other --reserve box -m 16K -e task:task_rename -C 0 &&
		perf record -q -P other --replace --reserve box -m 16K -e task:task_rename -C 0 &&
		perf record -q -P other --add -m 16K -e cpu-clock -C 1 &&
		[ "$(cat $DEVICE/sessions/other/region)" = box ] || return 1
	perf record -P other --replace -m 16K -e cpu-clock -C 1 2>&1 |
		grep "lies in the region 'box', the new one will not" &&
		[ -z "$(cat $DEVICE/sessions/other/region)" ] && perf ctl -d other
}

# The image that holds the session
holding()
{
	local image
	for image in box.0 box.1; do
		"$SELFTESTS/blackbox_read" "$LAST/$image" 2>/dev/null |
			grep -qE "^session [0-9]+ $1\$" && echo "$image"
	done
}

# The buffer of the session $1 has lost from $2 to $3 records.
has_lost()
{
	awk -v name="$1" -v from="$2" -v to="$3" '
		/^session/ && $3 == name { session = $2 }
		/^event/ && $6 == session { buffer = $8 }
		/^state of/ && $3 == buffer && $NF >= from && $NF <= to { found = 1 }
		END { exit !found }' /tmp/text
}

# The end of the kernel's log, from pstore
has_messages()
{
	mount -t pstore none /sys/fs/pstore || return 1
	perf data recover -q -o /tmp/messages.data --session box --last "$1"
	sed -n '/"messages_from"/,/^  \]/p' /tmp/messages.data.json >/tmp/messages
	umount /sys/fs/pstore
	cat /tmp/messages
	grep -q '"messages_from": "pstore"' /tmp/messages &&
		grep -q '"\[ *[0-9.]*\] sysrq: Trigger a crash"' /tmp/messages &&
		grep -q 'Kernel panic - not syncing: sysrq triggered crash' /tmp/messages
}

# When blackbox_late acted, the buffers were paused. It has thawed "frozen" and ended "late",
# which "late" and "witness" tell. The image is as it was before.
keeps_late()
{
	if ! "$SELFTESTS/blackbox_read" -t -f too-late "$LAST/$1" >/tmp/text ||
	   ! grep -qx 'state dead' /tmp/text ||
	   ! grep -qE '^session [0-9]+ late$' /tmp/text ||
	   ! grep -qE '^session [0-9]+ frozen$' /tmp/text ||
	   ! grep -A1 '^notes of frozen: base number 1' /tmp/text | grep -qx 'base 6 before' ||
	   [ "$(grep -c '^event ' /tmp/text)" != 11 ] ||
	   [ "$(grep -c '^state of .* paused 1 ' /tmp/text)" != 11 ] ||
	   ! grep -qx 'found 0 too-late' /tmp/text ||
	   ! has_lost late 20 39 || ! has_lost witness 40 99; then
		cat /tmp/text
		return 1
	fi
}

# The formats of the tracepoints come from the notes, the names from both.
recovers_placed()
{
	perf data recover -q -o /tmp/placed.data --session live --last "$1" || return 1
	"$BUILD/base/bin/perf" script -i /tmp/placed.data -F comm,event,trace >/tmp/samples \
		2>/tmp/complaints || { cat /tmp/complaints; return 1; }
	grep -cE '^ *load .*raw_syscalls:sys_enter: *NR ' /tmp/samples &&
		grep -q 'message-7-' /tmp/samples
}

# Without a controller for its children, all tasks count as those of the root.
make_older_cgroup()
{
	local controller
	read -r controller _ </sys/fs/cgroup/cgroup.controllers
	echo "+$controller" >/sys/fs/cgroup/cgroup.subtree_control
	mkdir /sys/fs/cgroup/older-than-session
}

# The cgroup of the load is older than the session: no record of the session names it.
names_cgroups()
{
	"$BUILD/base/bin/perf" script -i /tmp/placed.data -F comm,cgroup >/tmp/samples \
		2>/tmp/complaints || { cat /tmp/complaints; return 1; }
	grep -cE '^ *load +/older-than-session *$' /tmp/samples ||
		{ tail -n 5 /tmp/samples; return 1; }
}

# start_load NUMBER [CPU...]: a task on each CPU that keeps it in system calls; its name is
# "load". Before, the buffers are written several times over.
start_load()
{
	local cpu cpus=("${@:2}")
	[ ${#cpus[@]} != 0 ] || cpus=(0 1)
	cp "$(command -v dd)" /tmp/load
	for cpu in "${cpus[@]}"; do
		taskset -c "$cpu" /tmp/load if=/dev/zero of=/dev/null bs=1 count=2000 2>/dev/null
		taskset -c "$cpu" /tmp/load if=/dev/zero of=/dev/null bs=1 2>/dev/null &
	done
	for cpu in "${cpus[@]}"; do
		taskset -c "$cpu" bash -c "echo message-$1- >/dev/kmsg
			echo marker-$1- >/proc/self/comm"
	done
}

boot_1()
{
	tap_run "nothing was left by an earlier boot" holds_nothing
	tap_run "perf ctl lists nothing" lists
	tap_run "the session records in the region" is_recording
	tap_run "perf data note ends with its session" notes_end_with_session
	tap_run "what cannot be placed says why" errors_are_told
	tap_run "notes, memory and permissions of a session in a region" \
		"$SELFTESTS/persistent_blackbox"
}

death_1()
{
	watch_death
	start_load 1
	taskset -c 1 bash -c 'echo c >/proc/sysrq-trigger'
}

boot_2()
{
	tap_run "panic: the records are whole, up to the end" finds 0 1 dead
	tap_run "panic: the image is the memory at that moment" is_same box.0 "$OUT/memory"
	tap_run "panic: the reason and the tasks are told" tells_death \
		"sysrq triggered crash$" 1
	tap_run "panic: the death is the end" ends_with_death
	tap_run "panic: the buffers are paused before the message" pauses_first
	tap_run "panic: the notes are there" notes_are_there
	tap_run "panic: perf recovers each record" recovers
	tap_run "panic: pstore has the last messages" has_messages box.0
	cat $LAST/box.0 >"$OUT/image"
	tap_run "what is being overwritten is cut off" reader_cuts
	tap_run "others may neither read nor release" is_refused_to_others
	tap_run "perf ctl lists the death" lists_death
	tap_run "this boot records in the other half" is_recording
	tap_run "and leaves the first half alone" holds box.0
}

death_2()
{
	watch_death
	start_load 2
	ask reset
	sleep 600
}

boot_3()
{
	tap_run "reset: the records are whole, up to the end" finds 1 2 live
	tap_run "reset: there is no reason" tells_no_death
	tap_run "reset: the buffers were not paused" pauses_nothing
	tap_run "reset: the image is the memory at that moment" is_same box.1 "$OUT/memory"
	tap_run "the first death is kept" is_same box.0 "$OUT/image"
	tap_run "two deaths: the session is refused" is_refused
	tap_run "two deaths: both are shown" holds box.0 box.1
	tap_run "two deaths: perf record --reserve says what to do" says \
		"'box' is full of what kernels left .*: .*perf data recover --release" \
		-P x --reserve box
	tap_run "the second is released" release box.1
	tap_run "perf ctl tells a death from what was released" lists "box.0 yes dead" \
		"box.1 no released"
}

boot_4()
{
	tap_run "the released half is used" is_recording
	tap_run "the other one is kept" holds box.0
	start_load 4
	# The machine looks for leaked memory before it restarts: the load would hold that up.
	jobs -p | xargs kill
}

boot_5()
{
	tap_run "an orderly restart is no death" is_recording
	tap_run "after it, the same half is used" holds box.0
	tap_run "the first death is still the same" is_same box.0 "$OUT/image"
	tap_run "it is released" release box.0
}

death_5()
{
	watch_death
	start_load 5
	ask nmi
	sleep 600
}

boot_6()
{
	tap_run "panic in an NMI: the records are whole, up to the end" finds 1 5 dead
	tap_run "panic in an NMI: the image is the memory at that moment" \
		is_same box.1 "$OUT/memory"
	tap_run "panic in an NMI: the reason and the tasks are told" tells_death "NMI"
	tap_run "panic in an NMI: the death is the end" ends_with_death
	tap_run "panic in an NMI: the buffers are paused before the message" pauses_first
	tap_run "the half of the released death is used" is_recording
	tap_run "which is not shown any more" holds box.1
}

death_6()
{
	watch_death
	start_load 6
	perf data note -q box
	echo b >/proc/sysrq-trigger
}

boot_7()
{
	tap_run "triple fault: the records are whole, up to the end" finds 0 6 live
	tap_run "triple fault: the image is the memory at that moment" is_same box.0 "$OUT/memory"
	tap_run "triple fault: there is no reason" tells_no_death
	tap_run "triple fault: the buffers were not paused" pauses_nothing
	tap_run "triple fault: tasks have the names of the notes" names_by_notes box.0
	tap_run "two deaths: both are shown, again" holds box.0 box.1
	tap_run "two deaths: the unit recovers and releases both" unit_recovers
	tap_run "perf record --reserve says what is wrong" reserve_errors
	make_older_cgroup
	tap_run "perf record places a session in the released half" reserves live
	tap_run "perf record --replace and --add place events there as well" reserves_again
}

death_7()
{
	watch_death
	# It never ran on the CPU that dies: its munmap() would wait for that one to flush its TLB.
	taskset -c 1 "$SELFTESTS/blackbox_late" box >/tmp/late 2>&1 &
	eventually 300 grep -q waiting /tmp/late || { cat /tmp/late; return 1; }
	echo $BASHPID >/sys/fs/cgroup/older-than-session/cgroup.procs
	start_load 7 0
	# Each line of the panic takes so many ms.
	echo 200 >/proc/sys/kernel/printk_delay
	taskset -c 0 bash -c 'echo c >/proc/sysrq-trigger'
}

boot_8()
{
	local live
	live=$(holding live)
	tap_run "panic, after which sessions are thawed and ended" keeps_late "$live"
	tap_run "its image is the memory at the reset" is_same "$live" "$OUT/memory"
	tap_run "its records are whole, and no record is newer" ends_with_death mono
	tap_run "perf recovers the session that perf has placed, with names" recovers_placed "$live"
	tap_run "and the cgroup that is older than the session" names_cgroups
	ask stop
}

tools_boot_1()
{
	tap_run "a session of switches, locks and system calls records" \
		test -e $DEVICE/sessions/waits
}

# Tasks that wait for each other, for a CPU and for a lock, until the machine dies: the panic
# writes their names
tools_death_1()
{
	for _ in 1 2 3 4; do
		while dd if=/dev/zero of=/tmp/same bs=1M count=50 conv=notrunc 2>/dev/null; do
			:
		done &
	done
	sleep 4
	echo c >/proc/sysrq-trigger
}

# has WORDS COMMAND...: what a command prints of the recovered recording
has()
{
	if ! "${@:2}" -i /tmp/waits.data >/tmp/printed 2>&1 ||
	   ! grep -m1 -E "$1" /tmp/printed; then
		head -n 20 /tmp/printed
		return 1
	fi
}

traces()
{
	if ! perf trace -i /tmp/waits.data -o /tmp/calls >/tmp/printed 2>&1 ||
	   ! grep -m1 -E 'dd/[0-9]+ write\(.* = [0-9]' /tmp/calls; then
		head -n 20 /tmp/printed /tmp/calls
		return 1
	fi
}

tools_boot_2()
{
	tap_run "panic: it is recovered" \
		perf data recover -q -o /tmp/waits.data --last box.0
	tap_run "perf sched timehist reads it" \
		has ' dd\[[0-9/]+\] .* [0-9.]+ +[0-9.]+ +[0-9.]+' perf sched timehist
	tap_run "perf sched latency reads it" \
		has '^ *dd:[^|]*\| +[1-9][0-9.]* ms' perf sched latency
	tap_run "perf lock contention reads it" has ' [1-9][0-9]* .* (rwsem|mutex|spinlock)' \
		perf lock contention
	tap_run "perf trace reads it" traces
	tap_run "perf verdict reads it" has '^Nothing was found|^1\. ' perf verdict
	ask stop
}

# As the one that the test machine was booted with
make_initrd()
{
	local root=/tmp/root names='PATH|HOME|TERM|LANG|TOP|BASE|BUILD|BASE_PERF|VARIANT'
	mkdir -p $root
	cp "$BUILD/vm/init" $root/init
	cp /run/vm/cmd $root/cmd
	env | grep -E "^($names|ACCEL|SMP|TEST_MACHINE|OUT)=" >$root/job
	(cd $root && find . | cpio -o -H newc --quiet -R 0:0) >/tmp/initrd
}

# oops COMMAND...: it oopses, which kills the machine. On another CPU, init could meanwhile read
# what the kernel prints and tell the host of a splat; on this one interrupts are off until the end.
oops()
{
	taskset -p 1 1 >/dev/null
	taskset 1 "$@"
}

kexec_boot_1()
{
	tap_run "the session records in the region" is_recording
}

kexec_death_1()
{
	watch_death
	start_load 1
	echo c >/proc/sysrq-trigger
}

# The same kernel, with a region of twice the size
loads_next()
{
	local words
	words=$(sed 's/reserve_mem=8M:/reserve_mem=24M:/' /proc/cmdline)
	make_initrd && kexec -l --mem-max=0x40000000 "$BUILD/${VARIANT:-patched}/bzImage" \
		--initrd=/tmp/initrd --append="$words" &&
		[ "$(cat /sys/kernel/kexec_loaded)" = 1 ]
}

kexec_boot_2()
{
	tap_run "panic: the records are whole, up to the end" finds 0 1 dead
	tap_run "this boot records in the other half" is_recording
	tap_run "the next kernel is loaded" loads_next
}

kexec_death_2()
{
	start_load 2
	kexec -e
}

is_larger()
{
	grep 'reserve_mem=24M:' /proc/cmdline && [ "$(cat $DEVICE/sessions/box/state)" = 0 ] &&
		dmesg | grep "perf_persistent: region 'box': recording to 12288 KiB"
}

kexec_boot_3()
{
	tap_run "kexec: this boot records in a larger region" is_larger
	tap_run "kexec: perf ctl lists the death, and its own end is none" \
		lists "box.0 yes dead" "box.1 no clean"
	tap_run "kexec: the records are whole, up to the end" finds 0 1 dead
	tap_run "kexec: the image is the memory at the death" is_same box.0 "$OUT/memory"
	tap_run "kexec: perf recovers each record" recovers
	tap_run "kexec: the death is released" release box.0
	ask stop
}

handover_boot_1()
{
	kexec_boot_1
}

handover_death_1()
{
	kexec_death_1
}

hands_over()
{
	make_initrd && kexec -s -l "$BUILD/${VARIANT:-patched}/bzImage" --initrd=/tmp/initrd \
		--append="$(cat /proc/cmdline)" && [ "$(cat /sys/kernel/kexec_loaded)" = 1 ]
}

handover_boot_2()
{
	tap_run "panic: the records are whole, up to the end" finds 0 1 dead
	tap_run "this boot records in the other half" is_recording
	tap_run "the next kernel is loaded" hands_over
}

handover_death_2()
{
	kexec_death_2
}

is_handed_over()
{
	dmesg | grep "Revived memory reservation 'box' from KHO"
}

handover_boot_3()
{
	tap_run "kexec: the region was handed over" is_handed_over
	tap_run "kexec: perf ctl lists the death" lists "box.0 yes dead"
	tap_run "kexec: the records are whole, up to the end" finds 0 1 dead
	tap_run "kexec: the image is the memory at the death" is_same box.0 "$OUT/memory"
	tap_run "kexec: perf recovers each record" recovers
	tap_run "kexec: this boot records in the other half" is_recording
}

handover_death_3()
{
	watch_death
	start_load 3
	echo c >/proc/sysrq-trigger
}

handover_boot_4()
{
	tap_run "panic after kexec: the records are whole, up to the end" finds 1 3 dead
	tap_run "panic after kexec: the image is the memory at the death" \
		is_same box.1 "$OUT/memory"
	tap_run "panic after kexec: the first death is kept" holds box.0 box.1
	tap_run "the first death is released" release box.0
	ask stop
}

guest()
{
	local boot
	exec 3>&1
	boot=$(($(cat "$OUT/boot" 2>/dev/null) + 1))
	echo $boot >"$OUT/boot"
	# Numbers go on where the boot before has stopped.
	[ ! -e "$OUT/count" ] || read -r TAP_N TAP_BAD <"$OUT/count"
	echo "# boot $boot" >>"$OUT/tap"
	[ $boot = 1 ] || perf ctl -d brief >/dev/null 2>&1
	"${SCENE}boot_$boot" >>"$OUT/tap" 2>&1
	echo "$TAP_N $TAP_BAD" >"$OUT/count"
	if [ $boot = $BOOTS ]; then
		tap_end >>"$OUT/tap"
	elif declare -F "${SCENE}death_$boot" >/dev/null; then
		"${SCENE}death_$boot" >>"$OUT/tap" 2>&1
		sleep 600
	fi
}

# await STATE: until the machine is in it; false if QEMU has ended
await()
{
	local state
	while sleep 0.3; do
		state=$(qmp_answers "query-status " |
			sed -nE 's/.*"status": "([^"]*)".*/\1/p')
		[ "$state" != "$1" ] || return 0
		[ -n "$state" ] || return 1
	done
}

# A reset pauses the machine, the image at the address $1 is saved, and the reset takes place.
save_at_reset()
{
	await shutdown || return
	qmp "pmemsave \"val\": $(($1)), \"size\": $((4 << 20)), \"filename\": \"$OUT/memory\"" \
		'set-action "reboot": "reset", "shutdown": "poweroff"' "system_reset "
	await prelaunch || return
	qmp "cont "
}

# Do what the guest asks for.
serve()
{
	local line word what
	while read -r line; do
		[[ $line == "@host "* ]] || { printf '%s\n' "$line"; continue; }
		read -r word what word <<<"${line%$'\r'}"
		case $what in
		watch)
			rm -f "$OUT/memory"
			qmp 'set-action "reboot": "shutdown", "shutdown": "pause"'
			save_at_reset "$word" </dev/null &
			;;
		reset) qmp "system_reset " ;;
		save)
			qmp "stop " "pmemsave \"val\": 0, \"size\": $((MACHINE_MIB << 20)), \
				\"filename\": \"$OUT/memory\"" "cont "
			;;
		nmi) qmp "inject-nmi " ;;
		stop) qmp 'set-action "reboot": "shutdown", "shutdown": "poweroff"' ;;
		esac
		touch "$OUT/answer"
	done
}

host()
{
	local rc=0
	mkdir -p "$OUT"
	rm -f "$OUT"/{boot,count,tap,image,memory,answer,qmp,qmp.log}
	# The next kernel is to find the region where this one has put it: its initramfs is small.
	CMD="$TOP/tools/testing/vm/${0##*/} guest ${SCENE%_}" VARIANT=${VARIANT:-patched} SMP=2 \
		FAR=1 ACCEL=single MEM="${MACHINE_MIB:+${MACHINE_MIB}M}" ICOUNT='' \
		APPEND="${PARAMS[*]}" \
		QEMU_EXTRA="-action reboot=reset -qmp unix:$OUT/qmp,server=on,wait=off" \
		"$TOP/tools/testing/vm/vm.sh" | serve || rc=$?
	cat "$OUT/tap"
	if [ $rc != 0 ] || ! grep -q '^1\.\.' "$OUT/tap"; then
		echo "not ok the machine came through all $BOOTS boots (status $rc)"
		exit 1
	fi
	! grep -q '^not ok' "$OUT/tap"
}

# torture-deaths.sh and test-kdump.sh take what is above.
[ "${BASH_SOURCE[0]}" = "$0" ] || return 0

if [ "${1-}" = guest ]; then
	guest
else
	OUT=${OUT:-$BUILD/out/blackbox${SCENE:+-${SCENE%_}}}
	export OUT TIMEOUT=${TIMEOUT:-1100}
	host
fi
