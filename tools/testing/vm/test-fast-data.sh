#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# What perf records of a workload is the same on the base and on the patched kernel, but for
# times, pids and addresses of the kernel: the base's perf records it on both, in several ways
# that take the fast path, and perf script's text of all samples, with the size of each record,
# is compared. On the debug kernel CONFIG_PERF_FAST_CHECK compares each record with the general
# path's; this also finds what both paths have wrong. fast-data.c makes the same system calls
# each time.
#
# usage: test-fast-data		on the host
#	 test-fast-data guest	in a guest; writes $OUT/WAY.data
set -uo pipefail
# shellcheck source=tools/testing/vm/lib.sh
. "${BASH_SOURCE[0]%/*}/lib.sh"
# shellcheck source=tools/testing/vm/tap.sh
. "${BASH_SOURCE[0]%/*}/tap.sh"

PROGRAM=$BUILD/vm/fast-data
ENTER=raw_syscalls:sys_enter
# NAME OPTIONS...
WAYS=(
	"one-event          -e $ENTER"
	"two-events         -e $ENTER -e raw_syscalls:sys_exit"
	"same-event-twice   -e $ENTER -e $ENTER"
	"backward           --overwrite -e $ENTER"
	"filter             -e $ENTER --filter id!=3"
	"two-filters        -e $ENTER --filter id==9 -e $ENTER --filter id!=3"
	"each-third         -e $ENTER -c 3"
	"address-and-data   -d -e $ENTER"
	"no-inherit         -i -e $ENTER"
	"small-buffer       -m 4 -e raw_syscalls:*"
	"cgroup             --all-cgroups -e $ENTER"
	"mixed              -e $ENTER -e {sched:sched_process_exec,sched:sched_process_exit}"
	"kprobe             -e probe:fast_data"
	"uprobe             -e probe_user:fast_data"
	"task-of-a-wakeup   -e sched:sched_process_fork -e sched:sched_process_wait"
)

# Pids differ, and what fork (57) and wait4 (61) return: a task is named by when it appeared. The
# records of each task are compared in their order.
normalise()
{
	sed -E -e 's/\b(0x)?f[0-9a-f]{15}\b/ADDR/g' -e 's/pid=[0-9]+/pid=N/g' \
		-e 's/NR (57|61) = .*/NR \1/' | awk '
	{
		if (!($1 in task))
			task[$1] = ++tasks
		tid = $1
		$1 = ""
		printf "%04d%s\n", task[tid], $0
	}' | sort -s -k1,1
}

# text WAY DIRECTORY: of a recording, on the host
text()
{
	local data=$2/$1.data perf=$BUILD/base/bin/perf hex='0x[0-9a-f]+'
	"$perf" script -i "$data" -F tid,comm,event,period,trace >"$2/text" 2>"$2/said" &&
		"$perf" script -i "$data" -D >"$2/raw" || return 1
	sed -E 's/^ *([^ ]+) +([0-9]+) +/\2 \1 /' "$2/text" | normalise >"$2/$1"
	sed -nE -e "s/.*\[($hex)\]: PERF_RECORD_SAMPLE\(IP, ($hex)\): /\1 \2 /" \
		-e "s/^($hex) ($hex) [0-9]+\/([0-9]+): /\3 size \1 misc \2 /" \
		-e "s/(misc $hex) .* (period: [0-9]+).*/\1 \2/p" \
		"$2/raw" | normalise >>"$2/$1"
}

record()
{
	local name=$1
	shift
	perf record -q -o /tmp/data -N -B "$@" -- /tmp/fast-data && cp /tmp/data "$OUT/$name.data"
}

add_probes()
{
	local entry
	mountpoint -q /sys/kernel/tracing || mount -t tracefs none /sys/kernel/tracing
	echo 'p:probe/fast_data __x64_sys_exit_group' >>/sys/kernel/tracing/kprobe_events
	# What is linked to 0x400000 begins with the file.
	entry=$(readelf -h /tmp/fast-data | sed -n 's/.*Entry point address: *//p')
	printf 'p:probe_user/fast_data /tmp/fast-data:0x%x\n' $((entry - 0x400000)) \
		>>/sys/kernel/tracing/uprobe_events
}

guest()
{
	local way words
	cp "$PROGRAM" /tmp/fast-data && add_probes || exit 1
	for way in "${WAYS[@]}"; do
		read -ra words <<<"$way"
		record "${words[@]}" || exit 1
	done
}

boot()
{
	mkdir -p "$DIR/$1"
	CMD="PATH=$BUILD/base/bin:\$PATH $TOP/tools/testing/vm/${0##*/} guest" VARIANT=$1 \
		ICOUNT=1 SMP=1 OUT=$DIR/$1 TIMEOUT=200 "$TOP/tools/testing/vm/vm.sh"
}

# There is something, and it is the same.
same()
{
	text "$1" "$DIR/base" && text "$1" "$DIR/patched" || return 1
	wc -l "$DIR/base/$1"
	[ -s "$DIR/base/$1" ] && diff "$DIR/base/$1" "$DIR/patched/$1" | head -n 20
}

if [ "${1-}" = guest ]; then
	guest
	exit
fi

mkdir -p "$BUILD/vm"
gcc -O2 -Wall -Werror -static -nostdlib -no-pie -fno-stack-protector -o "$PROGRAM" \
	"$TOP/tools/testing/vm/fast-data.c" || exit 1
DIR=$(mktemp -d "$BUILD/fast-data.XXXXXX")
trap 'rm -rf "$DIR"' EXIT
tap_run "the base records" boot base
tap_run "the patched kernel records" boot patched
for way in "${WAYS[@]}"; do
	tap_run "${way%% *}: the same records" same "${way%% *}"
done
tap_end
