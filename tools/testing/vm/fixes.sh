#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# In the guest: the reproducers of patches/1-fixes that no other test runs. With VARIANT=base
# each of them must show its bug, with kernel and perf of the base, but those that this base has
# fixed itself. Otherwise none may.
#
# usage: fixes.sh [REPRODUCER...]	those functions alone
#
# A reproducer returns 0 if it saw the bug, 1 if it saw the right behaviour, anything
# else if it saw neither.
set -uo pipefail
# shellcheck source=tools/testing/vm/tap.sh
. "${BASH_SOURCE[0]%/*}/tap.sh"
PERF=$BUILD/$VARIANT/bin/perf
HERE=$TOP/tools/testing/vm
DIR=$(mktemp -d)
trap 'rm -rf "$DIR"' EXIT
cd "$DIR" || exit

# killed STATUS: of a command that died by SIGBUS, SIGSEGV or SIGABRT
killed()
{
	case $1 in
	134 | 135 | 139) return 0 ;;
	*) echo "status $1"; return 1 ;;
	esac
}

# "libperf: Count the two buffers of a CPU as one"
miscounted_mmaps()
{
	"$PERF" record -o two -e cpu-clock/overwrite/ -e task-clock/no-overwrite/ \
		-a true >log 2>&1 || { cat log; return 2; }
	grep 'Miscounted nr_mmaps' log
}

# "perf/core: Uncharge the mm that was charged for a ring buffer"
pinned_vm_wraps()
{
	"$HERE/pinned-vm.py"
}

# "perf/core: Charge a ring buffer once, however often it is mapped": the test of the fix
second_mapping_is_charged()
{
	"$BUILD/patched/selftests/unmap_twice" -t charged_once >log 2>&1
	grep -x 'ok 1 .*' log && return 1
	grep 'mapping 1 of round 2' log && return 0
	cat log
	return 2
}

# "perf/core: Let others run while a ring buffer is allocated"
mmap_keeps_cpu()
{
	"$HERE/mmap-preempt.py"
}

# "perf header: Check the size of an event's attributes". perf asks for 50 GiB first.
attr_larger_than_record()
{
	local rc=0
	echo 1 >/proc/sys/vm/overcommit_memory
	"$PERF" record -q -e cpu-clock -o - true >pipe 2>log || { cat log; return 2; }
	python3 - <<'PYTHON' || return 2
import struct
data = bytearray(open("pipe", "rb").read())
at = struct.unpack_from("<Q", data, 8)[0]
while struct.unpack_from("<I", data, at)[0] != 64:	# PERF_RECORD_HEADER_ATTR
    at += struct.unpack_from("<H", data, at + 6)[0]
struct.pack_into("<I", data, at + 8 + 4, 0x1000)	# perf_event_attr::size
open("pipe", "wb").write(data)
PYTHON
	"$PERF" script -i - <pipe >log 2>&1 || rc=$?
	echo 0 >/proc/sys/vm/overcommit_memory
	killed $rc
}

# "perf record: Ask again when the alarm was too early". The PLT entry of setitimer()
# cannot be slowed down from here, so perf is stopped while it starts, until the alarm is due.
alarm_is_lost()
{
	local i pid files
	for ((i = 0; i < 200; i++)); do
		sleep 60 &
	done 2>/dev/null
	"$PERF" record -q -e cpu-clock -c 100000000 -a \
		--switch-output=1s -o late -- sleep 8 >log 2>&1 &
	pid=$!
	until [ -e late ]; do
		kill -0 $pid || { cat log; return 2; }
	done
	kill -STOP $pid
	sleep 1.5
	kill -CONT $pid
	wait $pid
	# shellcheck disable=SC2046 # a list of pids
	kill $(jobs -p) 2>/dev/null
	wait 2>/dev/null
	files=$(find . -name 'late.*' | wc -l)
	echo "$files files"
	[ "$files" -lt 3 ]
}

# "perf record: Refuse --aio with overwrite buffers"
aio_overwrite_crashes()
{
	local rc=0
	"$PERF" record -q --aio --overwrite -e cpu-clock -a -o aio sleep 1 >log 2>&1 || rc=$?
	killed $rc
}

# "perf script: Hand Python names that are not UTF-8"
name_kills_script()
{
	local rc=0
	cat >show.py <<'PYTHON'
def process_event(event):
    print(event["comm"])
PYTHON
	"$PERF" record -q -e cpu-clock -o name -- python3 -c '
import ctypes, time
ctypes.CDLL(None).prctl(15, b"\xff", 0, 0, 0)	# PR_SET_NAME
end = time.monotonic() + 0.5
while time.monotonic() < end: pass' >log 2>&1 || { cat log; return 2; }
	# In the locale C, Python prints nothing but ASCII.
	LC_ALL=C.UTF-8 "$PERF" script -i name -s show.py >log 2>&1 || rc=$?
	killed $rc && return 0
	grep -q '[^ -~]' log || { cat log; return 2; }
	return 1
}

# "perf session: Refuse to read beyond the end of a file"
short_file_kills_report()
{
	local rc=0
	"$PERF" record -q -e cpu-clock -F 5000 -a -o whole sleep 2 >log 2>&1 ||
		{ cat log; return 2; }
	# What follows the data could be missed before the data is.
	craft short '{}' || return 2
	rm whole
	truncate -s 64K short
	"$PERF" report -i short --stdio >log 2>&1 || rc=$?
	killed $rc
}

# craft FILE FEATURES: a recording whose header has these features alone, { NUMBER: BYTES }
craft()
{
	[ -s whole ] || "$PERF" record -q -e cpu-clock -a -o whole sleep 0.2 >log 2>&1 ||
		{ cat log; return 1; }
	python3 - "$@" <<'PYTHON'
import struct, sys
def u32(*numbers): return struct.pack(f"<{len(numbers)}I", *numbers)
def u64(*numbers): return struct.pack(f"<{len(numbers)}Q", *numbers)
data = bytearray(open("whole", "rb").read())
features = eval(sys.argv[2])
at = sum(struct.unpack_from("<2Q", data, 40))		# struct perf_file_header::data
struct.pack_into("<4Q", data, 72, sum(1 << n for n in features), 0, 0, 0)
table, sections = b"", b""
for n in sorted(features):
    table += u64(at + 16 * len(features) + len(sections), len(features[n]))
    sections += features[n]
open(sys.argv[1], "wb").write(data[:at] + table + sections)
PYTHON
}

# header_kills FEATURES: does perf report die of a header with these features?
header_kills()
{
	local rc=0
	craft crafted "$1" || return 2
	"$PERF" report -I -i crafted --header-only >log 2>&1 || rc=$?
	killed $rc && return 0
	grep 'data offset\|incompatible file format' log && return 1
	cat log
	return 2
}

# "perf header: Terminate the strings of a recording". malloc() has 24 bytes for 24; behind
# them is the size of what it has given out next. Linux 7.3 has the last one for the end.
string_without_end()
{
	craft crafted '{ 3: u32(24) + b"A" * 24 }' || return 2	# HEADER_HOSTNAME
	"$PERF" report -i crafted --header-only >log 2>&1 || { cat log; return 2; }
	grep -aqxE '# hostname : A{23,24}' log && return 1
	grep -aE '# hostname : A{24}' log || { cat log; return 2; }
}

# "perf header: Count only the strings that were read"
arguments_without_memory()
{
	header_kills '{ 11: u32(0x7fffffff) }'			# HEADER_CMDLINE
}

siblings_without_names()
{
	header_kills '{ 7: u32(1, 1), 13: u32(1, 0, 1) }'	# HEADER_NRCPUS, HEADER_CPU_TOPOLOGY
}

# For a recording of x86 perf may read the PMUs of this machine.
pmus_without_names()
{
	# HEADER_ARCH, HEADER_PMU_MAPPINGS
	header_kills '{ 6: u32(6) + b"arm64\0", 16: u32(1) }'
}

arguments_larger_than_section()
{
	# HEADER_CMDLINE ends before its string; what follows begins with its length.
	header_kills '{ 11: u32(1), 12: u32(1 << 24) + bytes([65]) * (1 << 24) }'
}

# "perf header: Do not let the sizes of a recording wrap"
bitmap_size_wraps()
{
	# HEADER_MEM_TOPOLOGY
	header_kills '{ 22: u64(1, 4096, 1, 0, 0, 1 << 32) + bytes(1 << 24) }'
}

# "perf header: Read build-ids to where there is room"
build_id_overruns_stack()
{
	# HEADER_BUILD_ID: a record of PERF_RECORD_MISC_USER. It is larger than what there is room
	# for, and ends within the stack: at its end, the kernel gives up reading.
	header_kills '{ 2: u32(67) + struct.pack("<HH", 2, 20000) + b"A" * 19992 }'
}

# "perf tools: Look up the socket only of known CPUs"
cpu_beyond_table()
{
	local rc=0
	"$PERF" record -q -e cpu-clock -a -o cpu sleep 0.5 >log 2>&1 || { cat log; return 2; }
	"$PERF" report -I -i cpu --header-only | grep 'CPU 0: Core ID' || return 2
	python3 - <<'PYTHON' || return 2
import struct
data = bytearray(open("cpu", "rb").read())
attrs, _, at, size = struct.unpack_from("<4Q", data, 24)
sample_type = struct.unpack_from("<Q", data, attrs + 24)[0]
# What is in front of the CPU: IDENTIFIER, IP, TID, TIME, ADDR, ID, STREAM_ID
before = bin(sample_type & (1 << 16 | 1 | 2 | 4 | 8 | 1 << 6 | 1 << 9)).count("1")
end, nr = at + size, 0
while at < end:
    kind, _, size = struct.unpack_from("<IHH", data, at)
    if kind == 9:						# PERF_RECORD_SAMPLE
        struct.pack_into("<I", data, at + 8 + 8 * before, 0x7ffffff0)
        nr += 1
    at += size
open("cpu", "wb").write(data)
exit(not nr or not sample_type & 1 << 7)			# PERF_SAMPLE_CPU
PYTHON
	"$PERF" report -i cpu --stdio >log 2>&1 || rc=$?
	killed $rc && return 0
	grep -E 'Overhead' log && return 1
	cat log
	return 2
}

# "perf trace: Read files again"
trace_reads_no_file()
{
	local rc=0
	"$PERF" record -q -a -e raw_syscalls:sys_enter,raw_syscalls:sys_exit -o calls sleep 0.3 \
		>log 2>&1 || { cat log; return 2; }
	"$PERF" trace -i calls >log 2>&1 || rc=$?
	killed $rc && return 0
	grep -q 'nanosleep(' log && return 1
	head -n 20 log
	return 2
}

# "perf lock: Read recordings without a PERF_RECORD_MMAP of the kernel"
lock_without_kernel_map()
{
	local rc=0 restrict=/proc/sys/kernel/kptr_restrict before
	before=$(cat $restrict)
	echo 2 >$restrict
	# shellcheck disable=SC2016 # for the inner shell
	"$PERF" record -q -a --buildid-mmap -o locks \
		-e lock:contention_begin,lock:contention_end bash -c 'for n in 1 2 3 4; do
			dd if=/dev/zero of=same bs=4M count=30 conv=notrunc & done; wait' \
		>log 2>&1 || rc=2
	echo "$before" >$restrict
	rm -f same
	[ $rc = 0 ] || { cat log; return 2; }
	"$PERF" lock contention -i locks >log 2>&1 || rc=$?
	killed $rc && return 0
	grep -q 'rwsem\|mutex\|spinlock' log && return 1
	head -n 20 log
	return 2
}

# "perf sched timehist: Name the functions of call chains"
timehist_without_functions()
{
	"$PERF" record -q -a -g --buildid-mmap -e sched:sched_switch -o switches sleep 0.3 \
		>log 2>&1 || { cat log; return 2; }
	"$PERF" sched timehist -i switches >log 2>&1 || { cat log; return 2; }
	grep -q 'nanosleep' log && return 1
	grep -q '\[unknown\] <- \[unknown\]' log
}

# "perf tools: Wake the side-band thread when it is to end": what its last poll() returned
side_band_waits()
{
	local last
	"$PERF" record -q -e syscalls:sys_enter_poll,syscalls:sys_exit_poll -o polls -- \
		"$PERF" record -q -e cpu-clock -o ends -- sleep 0.3 >log 2>&1 ||
		{ cat log; return 2; }
	"$PERF" script -i polls -F tid,event,trace >calls 2>log || { cat log; return 2; }
	last=$(awk '/enter.*timeout_msecs: 0x0*3e8$/ { thread = $1 }
		    /exit/ && $1 == thread { last = $NF }
		    END { print last }' calls)
	case $last in
	0x0) return 0 ;;
	0x1) return 1 ;;
	*) cat calls; return 2 ;;
	esac
}

# "perf machine: Read all symbols of the kernel once": each open() is for another search.
kallsyms_is_read_again()
{
	local opens
	strace -f -e trace=openat -o calls "$PERF" record -q -e dummy -o ends -- true >log 2>&1 ||
		{ cat log; return 2; }
	opens=$(grep -c '"/proc/kallsyms".*= [0-9]' calls)
	echo "$opens times"
	[ "$opens" -gt 0 ] || return 2
	[ "$opens" -gt 2 ]
}

# "perf symbols: Do not search kallsyms when it has just been read"
kallsyms_is_searched_again()
{
	local size read
	"$PERF" record -q -e cpu-clock:k -o hot -- dd if=/dev/zero of=/dev/null bs=1 count=20000 \
		>log 2>&1 || { cat log; return 2; }
	# It may take the copy in the cache of build-ids.
	strace -qq -y -e trace=read -o calls "$PERF" script -i hot -F ip,sym \
		>log 2>&1 || { cat log; return 2; }
	grep -qE '^ *[0-9a-f]+ [a-z_]' log || { cat log; return 2; }
	size=$(wc -c </proc/kallsyms)
	read=$(awk '/^read[(][0-9]*<[^>]*kallsyms>/ { sum += $NF } END { print sum }' calls)
	echo "$read bytes of $size"
	[ "$read" -ge "$size" ] || return 2
	[ "$read" -gt $((size * 3 / 2)) ]
}

# "perf machine: Put the symbol of a BPF program at its address": two programs at once
ksymbol_is_misplaced()
{
	# shellcheck disable=SC2016 # for the inner shell
	"$PERF" record -q -a -e cpu-clock -F 999 -o programs -- bash -c '
		. "$0"
		run_bpf 1 &
		run_bpf 2
		wait' "$TOP/tools/perf/tests/shell/lib/flight.sh" >log 2>&1 ||
		{ cat log; return 2; }
	"$PERF" script -i programs --show-bpf-events >events 2>log || { cat log; return 2; }
	"$PERF" script -i programs -F ip,sym >samples 2>log || { cat log; return 2; }
	python3 - <<'PYTHON'
import re, sys
at = re.findall(r"KSYMBOL addr (\w+) len (\d+) type 1 flags 0x0 name \w+_flight_prog",
                open("events").read())
ranges = [range(int(addr, 16), int(addr, 16) + int(size)) for addr, size in at]
samples = named = 0
for line in open("samples"):
    ip, _, name = line.strip().partition(" ")
    if any(int(ip, 16) in r for r in ranges):
        samples += 1
        named += name.endswith("_flight_prog")
print(f"{len(ranges)} programs, {named} of {samples} samples have their names")
if len(ranges) != 2 or samples < 20:
    sys.exit(2)
sys.exit(named == samples)
PYTHON
}

# "perf tools: Describe the other cgroups if one is removed": a look at the third one fails, as
# if it was removed after its name was read.
removed_cgroup_ends_walk()
{
	local rc=0 named
	mkdir /sys/fs/cgroup/walk{1..5} || return 2
	strace -f -qq -e trace=name_to_handle_at -o calls \
		-e inject=name_to_handle_at:error=ENOENT:when=3 \
		"$PERF" record -q -a --all-cgroups -e dummy -o groups -- true >log 2>&1 || rc=2
	rmdir /sys/fs/cgroup/walk{1..5}
	if [ $rc != 0 ] || ! grep INJECTED calls; then
		cat log calls
		return 2
	fi
	"$PERF" script -i groups --show-cgroup-events >log 2>&1 || { cat log; return 2; }
	named=$(grep -c 'PERF_RECORD_CGROUP.* /walk[1-5]$' log)
	echo "$named of 5 have names"
	[ "$named" -lt 4 ]
}

# "perf symbols: Choose among the aliases of kallsyms"
worse_alias_is_chosen()
{
	local aliases
	# perf takes the name with fewer underscores before it: functions have up to four
	sed 's/^\([0-9a-f]* [tT] \)\(.*\)/&\n\1________alias_\2/' /proc/kallsyms >aliases
	"$PERF" record -q -e cpu-clock:k -o hot -- dd if=/dev/zero of=/dev/null bs=1 count=300000 \
		>log 2>&1 || { cat log; return 2; }
	"$PERF" script -i hot --kallsyms aliases -F ip,sym >log 2>&1 || { cat log; return 2; }
	grep -qE '^ *[0-9a-f]+ [a-z_]' log || { cat log; return 2; }
	aliases=$(grep -c ________alias_ log)
	echo "$aliases of $(wc -l <log)"
	grep ________alias_ log | sort | uniq -c | head
	[ "$aliases" -gt 0 ]
}

# "perf symbols: Do not read the PLT of a debug file": all that is left of a program
debug_file_kills_report()
{
	local id rc=0
	printf 'int main(void) { for (volatile long i = 0; i < 100000000; i++); }\n' >loop.c
	gcc -g -o busy loop.c && objcopy --only-keep-debug busy only.debug || return 2
	readelf -S only.debug >sections 2>&1
	grep -q '[.]plt[.]got .*NOBITS' sections || { cat sections; return 2; }
	id=$(readelf -n busy | awk '/Build ID:/ { print $3 }')
	install -D only.debug "symfs/usr/lib/debug/.build-id/${id:0:2}/${id:2}.debug"
	"$PERF" record -q -N -e cpu-clock -o busy.data ./busy >log 2>&1 || { cat log; return 2; }
	rm busy
	"$PERF" report --stdio -i busy.data --symfs symfs >log 2>&1 || rc=$?
	if [ $rc = 0 ]; then
		grep -E '^ +[0-9.]+% +busy +busy ' log && return 1
		cat log
		return 2
	fi
	killed $rc || return 2
}

# "perf script: Read instructions only to print them"
instructions_are_always_read()
{
	"$PERF" record -q -e syscalls:sys_enter_close -o closes -- true >log 2>&1 ||
		{ cat log; return 2; }
	strace -qq -e trace=openat -o calls "$PERF" script -i closes -F comm,trace,ip >log 2>&1 ||
		{ cat log; return 2; }
	grep -q '^ *true fd: 0x.* [0-9a-f]*$' log || { cat log; return 2; }
	"$PERF" script -i closes -F insn >log 2>&1 || { cat log; return 2; }
	grep -q '^ *insn: [0-9a-f]' log || { cat log; return 2; }
	grep '"/proc/kallsyms".*= [0-9]' calls
}

# "perf script: Look up addresses only to print them"
addresses_are_always_looked_up()
{
	"$PERF" record -q -a -e sched:sched_switch -o switches -- sleep 0.1 >log 2>&1 ||
		{ cat log; return 2; }
	strace -qq -e trace=openat -o calls "$PERF" script -i switches >log 2>&1 ||
		{ cat log; return 2; }
	grep -q ' sched:sched_switch: ' log || { cat log; return 2; }
	"$PERF" script -i switches -F ip,sym >log 2>&1 || { cat log; return 2; }
	grep -q '^ *[0-9a-f]* __schedule' log || { cat log; return 2; }
	grep '"/proc/kallsyms".*= [0-9]' calls
}

# "tools lib: Optimize libapi and libsymbol": an inline function that is called.
libraries_are_not_optimized()
{
	nm "$PERF" | grep ' cmd_record$' || return 2
	nm "$PERF" | grep ' io__get_char$'
}

# Of Linux 7.3: "perf evsel: Check the size of a deferred call chain"
deferred_chain_overruns()
{
	local rc=0
	"$TOP/tools/perf/tests/shell/lib/recording.py" make-deferred halves || return 2
	"$PERF" script -i halves -F comm,ip >log 2>&1 || rc=$?
	killed $rc && return 0
	cat log
	[ $rc = 0 ] && return 2
	return 1
}

# Of Linux 7.3: "perf symbols: Name a kernel's functions by its own kallsyms". The recording is
# of a kernel that does not run here.
kernel_has_names_of_another()
{
	local id
	"$PERF" record -q -a -e sched:sched_switch -g -o switches -- sleep 0.1 >log 2>&1 ||
		{ cat log; return 2; }
	"$PERF" script -i switches -F event,ip,sym >log 2>&1 || return 2
	grep -q ' __schedule$' log || { cat log; return 2; }
	id=$("$PERF" buildid-list -k)
	python3 - "$id" <<-'END' || return 2
		import sys
		assert sys.argv[1]
		old = bytes.fromhex(sys.argv[1])
		data = open('switches', 'rb').read()
		assert old in data
		open('switches', 'wb').write(data.replace(old, old[::-1]))
	END
	"$PERF" script -i switches -F event,ip,sym >log 2>&1 || return 2
	grep -q '^[[:space:]]*ffff[0-9a-f]* ' log || { cat log; return 2; }
	grep '^[[:space:]]*[0-9a-f]* __schedule$' log
}

# replaced OPTION...: record a program, and put another build of it at its path; options of perf
# record
replaced()
{
	local n

	for n in 2 1; do
		gcc -x c -O1 -g -no-pie -fomit-frame-pointer -DNUMBER=$n -o program.$n - <<-'END'
			#include <time.h>
			#if NUMBER == 1
			#define inlined inlined_before
			#define SIZE 512
			#else
			#define inlined inlined_after
			#define SIZE 4096
			#endif
			volatile unsigned long n;
			static inline __attribute__((always_inline)) void inlined(void)
			{
				for (int i = 0; i < 100000; i++)
					n++;
			}
			static __attribute__((noinline)) void callee(void)
			{
				volatile char on_stack[SIZE];
				on_stack[0] = 1;
				inlined();
				n += on_stack[0];
			}
			int main(void)
			{
				time_t end = time(NULL) + 2;
				while (time(NULL) < end)
					callee();
			}
		END
	done
	mv program.1 program
	"$PERF" record -q -e cpu-clock:u "$@" -o chains -- ./program >log 2>&1 ||
		{ cat log; return 1; }
	"$PERF" --buildid-dir "$DIR/cache" buildid-cache -a program || return 1
	mv program.2 program
	"$PERF" --buildid-dir "$DIR/cache" script -i chains -F ip,sym >log 2>&1 || return 1
	grep -q '^[[:space:]]*[0-9a-f]* callee$' log || { cat log; return 1; }
}

# Of Linux 7.3: "perf libdw: Read the file that was recorded"
inlines_of_another_file()
{
	replaced -g || return 2
	grep '^[[:space:]]*[0-9a-f]* inlined_after (inlined)$' log && return
	grep -q '^[[:space:]]*[0-9a-f]* inlined_before (inlined)$' log || { cat log; return 2; }
	return 1
}

# Of Linux 7.3: "perf unwind: Look for a file in the build-id cache first"
unwinds_with_another_file()
{
	replaced --call-graph dwarf || return 2
	# A record for each sample, up to an empty line
	awk -v RS= '/ callee(\n|$)/ { of++; called += / main(\n|$)/ }
		END { print of, "in callee(),", called, "of main()"; exit called > of / 2 }' log
}

# Of Linux 7.3: "perf drm_pmu: Follow no link to a file that is no device"
follows_links_of_tasks()
{
	echo >open
	sleep 60 7<open &
	strace -qq -e trace=newfstatat,readlinkat -o calls "$PERF" list pmu >log 2>&1 ||
		{ cat log; kill $!; return 2; }
	kill $!
	grep -E '^newfstatat\([0-9]+, "7", .*S_IFREG' calls && return
	grep -qE '^readlinkat\([0-9]+, "7", "/tmp/' calls || return 2
	return 1
}

# expect REPRODUCER
expect()
{
	local rc=0
	"$1" || rc=$?
	echo "$1: $rc"
	if [ "$VARIANT" = base ] && [[ " ${fixed[*]} " != *" $1 "* ]]; then
		[ $rc = 0 ]
	else
		[ $rc = 1 ]
	fi
}

of_newer=() fixed=()
if [ "$BASE" != 6.12 ]; then
	of_newer=(deferred_chain_overruns kernel_has_names_of_another inlines_of_another_file
		unwinds_with_another_file follows_links_of_tasks second_mapping_is_charged)
	fixed=(mmap_keeps_cpu attr_larger_than_record string_without_end arguments_without_memory
		siblings_without_names pmus_without_names arguments_larger_than_section
		bitmap_size_wraps build_id_overruns_stack cpu_beyond_table trace_reads_no_file
		timehist_without_functions)
fi
[ $# -gt 0 ] || set -- miscounted_mmaps pinned_vm_wraps mmap_keeps_cpu attr_larger_than_record \
	aio_overwrite_crashes name_kills_script short_file_kills_report alarm_is_lost \
	string_without_end arguments_without_memory siblings_without_names \
	pmus_without_names arguments_larger_than_section bitmap_size_wraps \
	build_id_overruns_stack cpu_beyond_table trace_reads_no_file \
	lock_without_kernel_map timehist_without_functions side_band_waits \
	kallsyms_is_read_again kallsyms_is_searched_again removed_cgroup_ends_walk \
	ksymbol_is_misplaced \
	worse_alias_is_chosen debug_file_kills_report instructions_are_always_read \
	addresses_are_always_looked_up libraries_are_not_optimized "${of_newer[@]}"
for reproducer; do
	bug="the bug is not there"
	[ "$VARIANT" != base ] || bug="the base has the bug"
	[[ " ${fixed[*]} " != *" $reproducer "* ]] || bug="the base has fixed it"
	tap_run "${reproducer//_/ }: $bug" expect "$reproducer"
done
tap_end
