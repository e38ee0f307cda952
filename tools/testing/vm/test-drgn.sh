#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A guest records and panics, QEMU dumps its memory, and vmcore-blackbox.py looks for the ring
# buffers in the dump. perf data recover finds the persistent session there by itself. The kernel is
# at a random address. VARIANT=base_debuginfo: a kernel without this series, which has no sessions;
# 'build.sh kernel base_debuginfo' builds it.
#
# usage: test-drgn.sh		on the host
#	 test-drgn.sh guest	in the guest
#
# The guest has a busy program and three recorders: an unmodified perf with backward buffers,
# another one with forward buffers, and a persistent session, which no process has open. A task
# gives itself the names marker-0, marker-1 and so on: each is a record of all three. There are
# more than the backward buffer holds, and fewer than the forward one does.
set -uo pipefail
# shellcheck source=tools/testing/vm/lib.sh
. "${BASH_SOURCE[0]%/*}/lib.sh"
# shellcheck source=tools/testing/vm/tap.sh
. "${BASH_SOURCE[0]%/*}/tap.sh"

SCRIPT=$TOP/tools/perf/examples/flight/vmcore-blackbox.py
# drgn is of Debian, for Debian's Python.
PYTHON=/usr/bin/python3
VARIANT=${VARIANT:-patched}
VMLINUX=$BUILD/$VARIANT/kernel/vmlinux
BASE_PERF=$BUILD/base/bin/perf
PERF=$BUILD/patched/bin/perf
MARKERS=4000
FREEZE_ON=/proc/sys/kernel/perf_persistent_freeze
# No ACPI tells the guest where to put the address of VMCOREINFO.
PARAMS="panic=0 qemu_fw_cfg.ioport=12@0x510:0:1:4"

has_sessions()
{
	[[ $VARIANT != base* ]]
}

# In the guest

# start_recorder NAME OPTION...: until it records
start_recorder()
{
	mkfifo "/tmp/$1.control" "/tmp/$1.ack"
	"$BASE_PERF" record -q -a -e task:task_rename -e cpu-clock/freq=200/ -o "/tmp/$1.data" \
		--control "fifo:/tmp/$1.control,/tmp/$1.ack" "${@:2}" &
	timeout 60 bash -c "echo ping >/tmp/$1.control && read -r _ </tmp/$1.ack"
}

# Without the boot parameter that it needs, the cause rcu-stall is refused.
refuses_stalls()
{
	! echo hung,rcu-stall >$FREEZE_ON && [ -z "$(cat $FREEZE_ON)" ] &&
		dmesg | grep 'rcu-stall needs the boot parameter' && echo refused
}

guest()
{
	local i
	# No record of a buffer names it.
	taskset -c 0 "$OUT/looper" test -w noploop 600 &
	start_recorder backward --overwrite -m 256K || return
	start_recorder forward -g -m 2M || return
	if has_sessions; then
		"$PERF" record -q -P kept -m 1M -e task:task_rename -a || return
		"$PERF" data note -q kept || return
		# RCU warns of this. Here nobody counts warnings.
		refuses_stalls >"$OUT/refused" 2>&1
		echo panic >$FREEZE_ON || return
	fi
	taskset -pc 1 $BASHPID >/dev/null
	for ((i = 0; i < MARKERS; i++)); do
		printf 'marker-%d' $i >/proc/self/comm
	done
	echo c >/proc/sysrq-trigger
}

# On the host

has_died()
{
	grep -q 'end Kernel panic' "$OUT/console" 2>/dev/null || ! kill -0 "$1" 2>/dev/null
}

# The machine stands still after its panic, until its memory is saved.
dump()
{
	local vm
	cp "$BASE_PERF" "$OUT/looper"
	CMD="$TOP/tools/testing/vm/${0##*/} guest" VARIANT=$VARIANT SMP=2 MEM=512M KASLR=1 \
		ICOUNT='' ACCEL=single APPEND="$PARAMS" CONSOLE=$OUT/console \
		QEMU_EXTRA="-device vmcoreinfo -qmp unix:$OUT/qmp,server=on,wait=off" \
		"$TOP/tools/testing/vm/vm.sh" >"$OUT/vm.log" 2>&1 &
	vm=$!
	eventually "$TIMEOUT" has_died $vm
	qmp "stop " "dump-guest-memory \"paging\": false, \"protocol\": \"file:$OUT/vmcore\"" \
		"quit "
	wait $vm
	if [ ! -s "$OUT/vmcore" ] || ! grep -q 'sysrq triggered crash' "$OUT/console"; then
		cat "$OUT/vm.log"
		return 1
	fi
}

is_at_random()
{
	local offset
	offset=$(grep -a -o -m1 'KERNELOFFSET=[0-9a-f]*' "$OUT/vmcore" | head -n1)
	echo "$offset"
	[[ ${offset#*=} =~ [1-9a-f] ]]
}

# By kernel.perf_persistent_freeze, after the message of the panic
frozen_by_panic()
{
	local said
	said=$(sed -nE 's/^\[ *([0-9.]+)\] Kernel panic - .*/\1/p' "$OUT/console" | tail -n1)
	"$PYTHON" - "$SCRIPT" "$OUT/vmcore" "$VMLINUX" "$said" <<-'END'
		import runpy, sys
		sys.dont_write_bytecode = True
		kernel = runpy.run_path(sys.argv[1])["Kernel"](*sys.argv[2:4])
		PANIC, SHIFT = 4, 8
		frozen = kernel.prog["PERF_PERSISTENT_FREEZING"].value_() | PANIC << SHIFT
		head = kernel.prog["perf_persistent_sessions"].address_of_()
		for s in kernel.list("struct perf_persistent_session", head, "entry"):
		    state, begin = s.freeze.state.counter.value_(), s.freeze.begin.value_() / 1e9
		    print(s.name.string_(), hex(state), begin, s.freeze.time.value_() / 1e9)
		    assert state == frozen and begin > float(sys.argv[4])
		    break
		else:
		    sys.exit("no session")
	END
}

# Without debug information. The manifest has the end of the kernel's log.
recovers_by_itself()
{
	local kept=$OUT/perf.data.by-itself
	"$PERF" data recover -q -f --session kept -o "$kept" "$OUT/vmcore" &&
		numbers_of "$kept" | diff - <(seq 0 $((MARKERS - 1))) || return 1
	"$BASE_PERF" script -i "$kept" -k "$VMLINUX" -F event,ip,sym \
		>"$OUT/text" 2>"$OUT/complaints"
	jq -r '.messages[]' "$kept.json" >"$OUT/messages"
	grep -m1 -E ' [0-9a-f]+ __set_task_comm' "$OUT/text" &&
		grep 'sysrq: Trigger a crash$' "$OUT/messages"
}

find_buffers()
{
	"$PYTHON" "$SCRIPT" "$OUT/vmcore" "$VMLINUX" "$@"
}

# The sessions of two processes
lists()
{
	find_buffers --list >"$OUT/list" || return 1
	cat "$OUT/list"
	[ "$(grep -cE '^perf-[0-9]+ .*task:task_rename' "$OUT/list")" = 2 ]
}

# and the one that no process has
lists_session()
{
	grep -E '^kept +- +[0-9]+ .*task:task_rename' "$OUT/list"
}

recovers()
{
	find_buffers "$OUT/image" && [ "$(stat -c %a "$OUT/image")" = 600 ] &&
		"$PERF" data recover -o "$OUT/perf.data" "$OUT/image"
}

# The file of a session: its name, or how many KiB its buffers have
file_of()
{
	local name
	name=$(awk -v what="$1" '/task_rename/ && ($1 == what || $5 == what) { print $1 }' \
		"$OUT/list")
	[ -n "$name" ] && echo "$OUT/perf.data.$name"
}

# numbers_of FILE: those of the markers, in the order of their records
numbers_of()
{
	"$BASE_PERF" script -G -i "$1" -F event,trace 2>"$OUT/complaints" |
		sed -nE 's/.*task_rename:.* newcomm=marker-([0-9]+) .*/\1/p'
}

# has_markers SESSION FROM TO: the oldest marker is between these, the newest is the last one, and
# none is missing in between. Of the buffers no more was dropped than a record that was cut.
has_markers()
{
	local file
	file=$(file_of "$1") && numbers_of "$file" >"$OUT/numbers" || return 1
	awk -v from="$2" -v to="$3" -v last=$((MARKERS - 1)) '
		NR == 1 { first = $1 }
		NR > 1 && $1 != old + 1 { print "after " old " comes " $1; bad = 1 }
		{ old = $1 }
		END {
			print "markers from " first " to " old
			exit bad || first < from || first > to || old != last
		}' "$OUT/numbers" || { cat "$OUT/complaints"; return 1; }
	awk '/"reason": .*"bytes":/ { gsub(",", ""); if ($5 >= 256) { print; bad = 1 } }
	     END { exit bad }' "$file.json"
}

build_id()
{
	"$BASE_PERF" buildid-list -i "$1"
}

# Task, mapping and build-id come from the dump alone.
names_program()
{
	local file
	file=$(file_of 512) || return 1
	"$BASE_PERF" script -i "$file" -F comm,ip,sym,dso -G >"$OUT/text" 2>"$OUT/complaints"
	# A newer perf gives its workload a name.
	grep -m1 -E "^ *(looper|perf-noploop) +[0-9a-f]+ noploop \\($OUT/looper\\)" "$OUT/text" &&
		"$BASE_PERF" script -i "$file" --show-mmap-events 2>/dev/null |
			grep -F "<$(build_id "$OUT/looper")>" | grep -m1 -E "r-xp $OUT/looper$"
}

# names_kernel OPTION...: the kernel's own symbols, at the address where it ran
names_kernel()
{
	local file
	file=$(file_of 4096) || return 1
	"$BASE_PERF" script -i "$file" "$@" -F event,ip,sym >"$OUT/text" 2>"$OUT/complaints"
	grep -m1 -E '^\s+[0-9a-f]+ __set_task_comm' "$OUT/text"
}

# All tasks but those that had exited, which the memory does not tell of
names_tasks()
{
	jq -e '.events > 1000 and .unresolved * 100 < .events' "$1" || {
		jq '{events, unresolved}' "$1"
		return 1
	}
}

tells_death()
{
	local json
	json=$(file_of 512).json || return 1
	grep -E '"reason": "sysrq triggered crash"' "$json" &&
		grep -E '"trigger_comm": "marker-'$((MARKERS - 1))'"' "$json" &&
		grep -E '"trigger_cpu": 1,' "$json" &&
		grep -E '"formats_unknown": 0,' "$json" && names_tasks "$json"
}

# As after a build with a compiler's cache: drgn does not know then which struct is meant.
finds_without_paths()
{
	"${0%/*}/double-structs.py" "$VMLINUX" "$OUT/vmlinux" || return
	"$PYTHON" "$SCRIPT" "$OUT/vmcore" "$OUT/vmlinux" --list | diff "$OUT/list" - &&
		"$PYTHON" "$SCRIPT" "$OUT/vmcore" "$OUT/vmlinux" "$OUT/image.2" &&
		cmp "$OUT/image" "$OUT/image.2"
}

selects()
{
	find_buffers --list --comm kept >"$OUT/selected" || return 1
	cat "$OUT/selected"
	[ "$(wc -l <"$OUT/selected")" = 2 ] && grep -q '^kept ' "$OUT/selected"
}

# says PATTERN COMMAND...: it fails with such a message of one line
says()
{
	! "$PYTHON" "$SCRIPT" "${@:2}" >"$OUT/said" 2>&1 && cat "$OUT/said" &&
		[ "$(wc -l <"$OUT/said")" = 1 ] && grep -qE -e "$1" "$OUT/said"
}

refuses()
{
	head -c $((1 << 20)) /dev/zero >"$OUT/zeros"
	says 'is no kernel with debug information: take' "$OUT/vmcore" \
		"$BUILD/base/kernel/vmlinux" --list &&
		says 'is no kernel with debug information' "$OUT/vmcore" "$OUT/zeros" --list &&
		says 'zeros cannot be read: not an ELF core file' "$OUT/zeros" "$VMLINUX" --list &&
		says 'missing cannot be read: No such file' "$OUT/missing" "$VMLINUX" --list &&
		says 'No event has a ring buffer' "$OUT/vmcore" "$VMLINUX" --pid 1 "$OUT/none" &&
		says 'cannot be written: No such file' "$OUT/vmcore" "$VMLINUX" "$OUT/no/such" &&
		[ ! -e "$OUT/none" ]
}

host()
{
	mkdir -p "$OUT"
	rm -rf "${OUT:?}"/*
	if ! "$PYTHON" -c 'import drgn' 2>/dev/null; then
		tap_skip "ring buffers in a memory dump" "there is no python3-drgn: run 'make deps'"
		tap_end
		return
	fi
	tap_run "a machine dies, and its memory is saved" dump
	tap_run "its kernel was at a random address" is_at_random
	tap_run "both recorders are listed" lists
	if has_sessions; then
		tap_run "and the session" lists_session
		tap_run "perf data recover finds the session and the messages" recovers_by_itself
		tap_run "the panic has frozen it" frozen_by_panic
		tap_run "the cause rcu-stall was refused" grep -x refused "$OUT/refused"
	fi
	tap_run "an image is written and recovered" recovers
	tap_run "backward buffer: it has each of the newest records" has_markers 512 1 3000
	tap_run "forward buffer: it has each record" has_markers 4096 0 0
	! has_sessions ||
		tap_run "session that no process has: it has each record" has_markers kept 0 0
	tap_run "an unmodified perf names the program and its function" names_program
	tap_run "and the functions of the kernel, by vmlinux" names_kernel -k "$VMLINUX"
	tap_run "and by System.map" names_kernel --kallsyms "${VMLINUX%/*}/System.map"
	tap_run "the manifest tells the death" tells_death
	tap_run "the same is found if structs are there twice" finds_without_paths
	! has_sessions || tap_run "one session is chosen" selects
	tap_run "what cannot be read is refused in a sentence" refuses
	rm -f "$OUT"/{vmcore,vmlinux,image,image.2,looper,zeros}
	tap_end
}

if [ "${1-}" = guest ]; then
	guest
else
	OUT=${OUT:-$BUILD/out/drgn}
	TIMEOUT=${TIMEOUT:-$((90 * ${SLACK:-5}))}
	export OUT TIMEOUT
	host
fi
