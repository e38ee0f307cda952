#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A machine with a crash kernel dies under load. What perf data recover reads of it is the same,
# byte for byte, whatever the memory was saved as: /proc/vmcore as the crash kernel finds it, what
# makedumpfile makes of that, a raw dump, and the region after the next boot. A session "plain",
# which lies in no region, is read of each of these but the last.
#
# usage: test-kdump.sh		on the host
#	 test-kdump.sh guest	in the guest
#
# The boots, all of one machine, and how each of them ends:
#
#	1  panic in a task	the crash kernel starts, in memory of its own
#	2  reset		that is the crash kernel: it saves the memory
#	3  oops in a task	the image in the region is read; the crash kernel starts again,
#				by oops_end() and without a panic()
#	4  reset		that is the crash kernel
#	5  the end		the image of the oops is read
#
# The crash kernel is the same kernel with the same init. Its command line is that of the first
# one, with reserve_mem= and perf_persistent=: a crash kernel must leave the region alone.
#
# What was saved is recovered on the host, where reading it takes less time.
set -uo pipefail
# shellcheck source=tools/testing/vm/test-blackbox.sh
. "${BASH_SOURCE[0]%/*}/test-blackbox.sh"

# shellcheck disable=SC2034 # test-blackbox.sh uses these
BOOTS=5 MACHINE_MIB=640
# shellcheck disable=SC2034,SC2054 # the commas are the parameters'
PARAMS=(
	crashkernel=160M
	reserve_mem=8M:4096:box
	perf_persistent=box:raw_syscalls:sys_enter,task:task_rename,printk:console:64K@box
	nokaslr
)
# What makedumpfile can be built without. By the name of its option
declare -A COMPRESSION=([c]=zlib [l]=lzo [p]=snappy [z]=zstd)

load_crash_kernel()
{
	make_initrd || return 1
	kexec -p "$BUILD/$VARIANT/bzImage" --initrd=/tmp/initrd \
		--append="$(cat /proc/cmdline) nr_cpus=1" &&
		[ "$(cat /sys/kernel/kexec_crash_loaded)" = 1 ]
}

# It has notes, as a crash kernel is loaded.
makes_plain()
{
	if ! perf record -P plain -m 64K -a \
		-e raw_syscalls:sys_enter,task:task_rename,printk:console 2>/tmp/made ||
	   ! grep 'stored [1-9][0-9]* bytes with session plain' /tmp/made; then
		cat /tmp/made
		return 1
	fi
}

# What has ended is not found. Notes that are stored again are where they were last written.
ends_another()
{
	perf record -q -P ended -m 16K -e task:task_rename -a && perf data note -q plain &&
		perf data note -q plain && perf ctl -d ended
}

boot_1()
{
	tap_run "the session records in the region" is_recording
	tap_run "its notes are stored" perf data note -q box
	tap_run "a crash kernel is loaded" load_crash_kernel
	tap_run "perf record -P stores notes then" makes_plain
	tap_run "another session comes and goes" ends_another
}

death_1()
{
	start_load 1
	echo c >/proc/sysrq-trigger
}

is_crash_kernel()
{
	[ -e /proc/vmcore ] && grep -q 'elfcorehdr=' /proc/cmdline
}

# It has the parameters and heeds none of them.
ignores_regions()
{
	local said
	grep -q 'reserve_mem=.* perf_persistent=box:.*@box' /proc/cmdline || return 1
	said=$(dmesg | grep 'perf_persistent: ')
	if [ -n "$said" ] || [ -e $DEVICE/sessions/box ] || ! holds_nothing; then
		echo "$said"
		ls $DEVICE/sessions $LAST
		return 1
	fi
}

# saves COMPRESSION: by makedumpfile, with all that it can leave out left out
saves()
{
	if makedumpfile -v 2>&1 | grep -q "^${COMPRESSION[$1]}.*disabled"; then
		echo "skip: makedumpfile was built without ${COMPRESSION[$1]}"
		return 2
	fi
	makedumpfile "-$1" -d 31 /proc/vmcore "$OUT/dump.${COMPRESSION[$1]}"
}

saves_flattened()
{
	makedumpfile -F "${@:2}" -d 31 /proc/vmcore >"$OUT/dump.$1"
}

boot_2()
{
	tap_run "the crash kernel runs" is_crash_kernel
	tap_run "it ignores regions and boot sessions" ignores_regions
	tap_run "a raw dump is saved" ask save
	tap_run "the vmcore is saved" cp /proc/vmcore "$OUT/dump.vmcore"
	tap_run "makedumpfile saves it, zlib" saves c
	tap_run "makedumpfile saves it, lzo" saves l
	tap_run "makedumpfile saves it, snappy" saves p
	tap_run "makedumpfile saves it, zstd" saves z
	tap_run "makedumpfile saves it as a core file" \
		makedumpfile -E -d 31 /proc/vmcore "$OUT/dump.core"
	tap_run "makedumpfile saves it flattened" saves_flattened flat -l
	tap_run "makedumpfile saves a core file flattened" saves_flattened flat-core -E
}

# It restarts at the end of its command, as any machine of the tests.
unset -f death_2

boot_3()
{
	tap_run "panic: the records are whole, up to the end" finds 0 1 dead
	tap_run "panic: the reason and the tasks are told" tells_death "sysrq triggered crash"
	tap_run "panic: perf recovers each record" recovers
	cat $LAST/box.0 >"$OUT/image"
	tap_run "the other half is used" is_recording
	tap_run "the first death is released" release box.0
	tap_run "the notes are stored again" perf data note -q box
	tap_run "a crash kernel is loaded again" load_crash_kernel
}

# panic_on_oops is set: each oops starts the crash kernel.
death_3()
{
	start_load 3
	insmod "$BUILD/$VARIANT/test_modules/perf_stall.ko"
	oops bash -c 'echo oops 0 >/dev/perf_stall'
}

boot_4()
{
	tap_run "oops: the crash kernel runs" is_crash_kernel
	tap_run "oops: the vmcore is saved" cp /proc/vmcore "$OUT/dump.oops"
}

unset -f death_4

# The death is of kind 2: there was no panic().
tells_oops()
{
	if ! grep -E '^death kind 2 .* comm bash .* reason Oops$' /tmp/text ||
	   ! grep -qE '^task [0-9]+ [0-9]+ load$' /tmp/text; then
		grep -E '^(death|task)' /tmp/text
		return 1
	fi
}

boot_5()
{
	tap_run "oops: the records are whole, up to the end" finds 1 3 dead
	tap_run "oops: what it was about is the reason, and there was no panic" tells_oops
	tap_run "oops: the death is the end" ends_with_death
	cat $LAST/box.1 >"$OUT/image.oops"
	ask stop
}

# recovered FILE [OPTION...]: what perf recovers of it on the host
recovered()
{
	"$BUILD/patched/bin/perf" data recover -q "${@:2}" --session box -o "$OUT/$1.data" "$OUT/$1"
}

recovered_plain()
{
	"$BUILD/patched/bin/perf" data recover -q -f --session plain -o "$OUT/$1.plain" "$OUT/$1"
}

# is_told_alike FILE FILE: what is said of them but for the name and the kernel's messages
is_told_alike()
{
	local file
	for file; do
		jq -e 'del(.file, .messages, .messages_from)' "$OUT/$file.json" \
			>"$OUT/$file.told" || return
	done
	diff "$OUT/$1.told" "$OUT/$2.told"
}

# The end of the kernel's log, which is in each dump that has VMCOREINFO
has_messages()
{
	jq -r .messages[] "$OUT/$1.data.json" >"$OUT/messages" || return 1
	tail -n 3 "$OUT/messages"
	[ "$(jq -r .messages_from "$OUT/$1.data.json")" = dump ] &&
		[ "$(wc -l <"$OUT/messages")" -gt 20 ] &&
		grep -qE '^\[ *[0-9]+\.[0-9]{6}\] sysrq: Trigger a crash$' "$OUT/messages" &&
		grep -q 'Kernel panic - not syncing: sysrq triggered crash' "$OUT/messages"
}

# The recording, and what is said of it
is_same_death()
{
	recovered "$1" -f && cmp "$OUT/image.data" "$OUT/$1.data" &&
		is_told_alike image.data "$1.data"
}

# Linux 7.3 has another name in VMCOREINFO for what tells that a page is not the first of an
# allocation. A makedumpfile that does not know it, as 1.7.2, takes the second page for one of a
# user: level 8 leaves it out. A core file has it all the same, as it is not worth a segment.
knows_the_kernels_pages()
{
	local name
	name=$(grep -a -o -m1 'OFFSET(page\.compound_[a-z]*)=' "$OUT/dump.vmcore" | head -n1)
	[ -n "$name" ] && grep -aqF "$name" "$(command -v makedumpfile)"
}

# again FILE: as it was saved, but for level 8
again()
{
	local option to=$OUT/kernel.${1#dump.}
	if [ "$1" = dump.flat ]; then
		makedumpfile -F -l -d 23 "$OUT/dump.vmcore" >"$to"
		return
	fi
	for option in "${!COMPRESSION[@]}"; do
		if [ "$1" = "dump.${COMPRESSION[$option]}" ]; then
			makedumpfile "-$option" -d 23 "$OUT/dump.vmcore" "$to"
			return
		fi
	done
}

# Of all dumps, as of the vmcore
is_same_plain()
{
	local file=$1
	case $1 in
	dump.zlib|dump.lzo|dump.snappy|dump.zstd|dump.flat)
		if ! knows_the_kernels_pages; then
			again "$1" || return 1
			file=kernel.${1#dump.}
		fi ;;
	esac
	recovered_plain "$file" && cmp "$OUT/dump.vmcore.plain" "$OUT/$file.plain" &&
		is_told_alike dump.vmcore.plain "$file.plain"
}

# The root is where VMCOREINFO says, and leads to the sessions that had not ended.
leads_to_sessions()
{
	local root
	root=$(grep -a -o -m1 'PERF_BLACKBOX=[0-9a-f]*' "$OUT/dump.vmcore" | head -n1)
	"$BUILD/patched/bin/perf" data recover --list "$OUT/dump.vmcore" >"$OUT/list" &&
		grep "at 0x${root#*=}: dead, memory of the kernel" "$OUT/list" &&
		grep '^  session plain: .*[1-9] KiB of notes$' "$OUT/list" &&
		! grep '^  session ended' "$OUT/list"
}

# The buffers were paused before the kernel printed why it panics.
ends_with_its_death()
{
	local newest death
	"$BUILD/base/bin/perf" script -i "$OUT/dump.vmcore.plain" -F comm,time,event,trace \
		>"$OUT/plain.txt" 2>"$OUT/plain.err" || { cat "$OUT/plain.err"; return 1; }
	newest=$(sed -nE 's/.* ([0-9]+\.[0-9]+): .*/\1/p' "$OUT/plain.txt" | tail -n1)
	death=$(jq .image.died.perf "$OUT/dump.vmcore.plain.json")
	echo "newest record $newest, death $death"
	grep -m1 '^ *load .*raw_syscalls:sys_enter' "$OUT/plain.txt" &&
		! grep 'Kernel panic - not syncing' "$OUT/plain.txt" &&
		awk -v a="$newest" -v b="$death" 'BEGIN { exit !(a > 0 && a <= b) }'
}

# Why a dump cannot be read here; nothing if it can
obstacle()
{
	case $1 in
	*.snappy|*.zstd|*.lzo|*.flat)
		[ -e "$OUT/$1" ] || { echo "makedumpfile was built without it"; return; } ;;&
	*.zlib|*.snappy|*.zstd|*.lzo|*.flat)
		"$BUILD/patched/bin/perf" version --build-options |
			grep -q 'libkdumpfile: \[ on' ||
			echo "perf was built without libkdumpfile" ;;
	esac
}

# compare WORDS FUNCTION FILE...
compare()
{
	local file why
	for file in "${@:3}"; do
		why=$(obstacle "$file")
		if [ -n "$why" ]; then
			tap_skip "$1: $file" "$why"
		else
			tap_run "$1: $file" "$2" "$file"
		fi
	done
}

# The same of the vmcore and of the region, with the oops as the reason
is_same_oops()
{
	recovered image.oops && recovered dump.oops &&
		cmp "$OUT/image.oops.data" "$OUT/dump.oops.data" &&
		is_told_alike image.oops.data dump.oops.data &&
		jq -r .reason "$OUT/dump.oops.data.json" | grep -x Oops &&
		"$BUILD/base/bin/perf" script -i "$OUT/dump.oops.data" -F comm,event,trace \
			>"$OUT/oops.txt" 2>/dev/null &&
		grep -m1 '^ *load .*raw_syscalls:sys_enter' "$OUT/oops.txt" &&
		grep -m1 message-3- "$OUT/oops.txt"
}

reads()
{
	local samples
	tap_run "the region after the reboot is recovered" recovered image -f
	samples=$("$BUILD/base/bin/perf" script -i "$OUT/image.data" -F event 2>/dev/null | wc -l)
	tap_run "it has samples" test "$samples" -gt 1000
	compare "the same records" is_same_death memory \
		dump.{vmcore,zlib,lzo,snappy,zstd,core,flat,flat-core}
	compare "the messages of the kernel" has_messages \
		dump.{vmcore,zlib,lzo,snappy,zstd,core,flat,flat-core}
	tap_run "plain: VMCOREINFO leads to it" leads_to_sessions
	tap_run "plain: it is recovered" recovered_plain dump.vmcore
	tap_run "plain ends with the death" ends_with_its_death
	compare "plain: the same records" is_same_plain memory \
		dump.{zlib,lzo,snappy,zstd,core,flat,flat-core}
	tap_run "oops: the vmcore and the region give the same records" is_same_oops
	tap_end
}


if [ "${1-}" = guest ]; then
	guest
else
	OUT=${OUT:-$BUILD/out/kdump}
	export OUT TIMEOUT=${TIMEOUT:-$((200 * ${SLACK:-5}))}
	rm -f "$OUT"/{dump,kernel,image,memory}*
	# The plan comes at the end, with the tests on the host.
	(host) | grep -v '^1\.\.' || exit 1
	read -r TAP_N TAP_BAD <"$OUT/count"
	reads || exit 1
	# More than 1 GB
	rm -f "$OUT"/{dump,kernel,memory}*
fi
