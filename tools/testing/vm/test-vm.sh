#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The test machine tells the truth: statuses come through, splats are seen and
# only splats, a dead or hanging machine is not a passed test, nothing is left.
#
# usage: test-vm
set -uo pipefail
# shellcheck source=tools/testing/vm/lib.sh
. "${BASH_SOURCE[0]%/*}/lib.sh"
# shellcheck source=tools/testing/vm/tap.sh
. "${BASH_SOURCE[0]%/*}/tap.sh"

VM=$TOP/tools/testing/vm/vm.sh
export OUT=${OUT:-$BUILD/out/vm.harness}
# No verdict but that of the second test is a time-out's: a busy machine has time.
export VARIANT=patched TIMEOUT=900

# expect STATUS PATTERN: $CMD ends so, and its output has a line like that
expect()
{
	local want=$1 pattern=$2 rc=0 text
	text=$("$VM" 2>&1) || rc=$?
	echo "$text"
	echo "status $rc, wanted $want"
	[ "$rc" = "$want" ] && grep -q -- "$pattern" <<<"$text"
}

guest_view()
{
	local marker=$OUT/from-guest
	rm -f "$marker"
	# shellcheck disable=SC2016 # for the guest's shell
	CMD='set -e; [ "$(id -u)" = 0 ]; [ "$PWD" = /tmp ]; [ -z "$(ls -A /tmp)" ]
		echo x >/tmp/x; ! touch /usr/x 2>/dev/null; cmp "$TOP/Makefile" "$TOP/Makefile"
		perf_path=$(command -v perf); [ "$perf_path" = "$BUILD/patched/bin/perf" ]
		{ nproc; cksum /bin/bash /lib64/ld-linux-x86-64.so.2 /etc/ld.so.cache
			stat -f -c %T /; } >"$OUT/from-guest"; echo to-stderr >/dev/stderr
		echo "BUG: said by a command"; echo "WARNING: said to kmsg" >/dev/kmsg; exit 7' \
		SMP=3 expect 7 '^to-stderr$' && diff "$marker" - <<-END
			3
			$(cksum /bin/bash /lib64/ld-linux-x86-64.so.2 /etc/ld.so.cache)
			overlayfs
		END
}

# What it said before it was stopped is there. A busy machine takes longer to begin.
time_out()
{
	local seconds
	for seconds in 15 30 60 120 240; do
		! CMD='echo begun; sleep 1000' TIMEOUT=$seconds expect 124 '^begun$' || return 0
	done
	return 1
}

dead_machine()
{
	CMD='true' APPEND='init=/none rdinit=/none' expect 99 'No working init\|Kernel panic'
}

# What to have the kernel say: see poke_again/splat.c.
splat()
{
	# shellcheck disable=SC2016 # for the guest's shell
	printf '! insmod "$BUILD/patched/poke_again/splat.ko" what=%s\n' "$1"
}

oops_told()
{
	CMD=$(splat panic) \
		expect 99 'how the command ended: Kernel panic - not syncing: asked for'
}

warning_seen()
{
	CMD=$(splat warn) expect 99 'kernel splat on patched: WARNING: '
}

# What a test causes on purpose is none; but it must be there, and all else must not.
expected_seen()
{
	EXPECT=$'^WARNING: .*splat_warn\n' CMD=$(splat warn) expect 0 '' &&
		EXPECT='^WARNING: .*splat_warn[+]' CMD="$(splat warn); $(splat warn_again)" \
			expect 99 'splat on patched: WARNING: .*splat_warn_again' &&
		EXPECT='^WARNING: ' CMD=true expect 99 'did not say what was expected: ^WARNING: '
}

leak_seen()
{
	# shellcheck disable=SC2016 # for the guest's shell
	VARIANT=debug CMD='insmod "$BUILD/debug/kernel/samples/kmemleak/kmemleak-test.ko"' \
		expect 99 'kmemleak'
}

interrupt()
{
	local pid before
	# A shell's background jobs ignore SIGINT; Ctrl-C meets one that does not.
	CMD='sleep 1000' setsid env --default-signal=INT "$VM" >/dev/null 2>&1 &
	pid=$!
	for _ in $(seq 600); do
		before=$(pgrep -P "$pid" qemu-system) && break
		sleep 0.1
	done
	[ -n "${before:-}" ] || { echo "QEMU did not start"; return 1; }
	kill -INT -- "-$pid"
	for _ in $(seq 600); do
		kill -0 "$before" 2>/dev/null || return 0
		sleep 0.1
	done
	echo "QEMU $before still runs"
	kill -KILL "$before"
	return 1
}

# The plugin counts what the guest's clock counts, and each function as often as it is called.
profile_counts()
{
	local report clock dir=$BUILD/profile
	# shellcheck disable=SC2016 # for the guest's shell
	report=$(CMD='rm -f /tmp/cost; "$OUT/syscall-cost" /tmp/cost; cp /tmp/cost "$OUT"' \
		PER=200000 MARKS=own "$TOP/tools/testing/vm/profile.sh" 2>&1) ||
		{ echo "$report"; return 1; }
	echo "$report"
	clock=$(cat "$dir/cost")
	echo "by the clock: $clock"
	awk -v clock="$clock" '
		$4 == "__x64_sys_close" { called = $3 == "1.00" }
		$3 == "all" { same = $1 / clock > 0.99 && $1 / clock < 1.01 }
		END { exit !(called && same) }' <<<"$report"
}

profile_refuses()
{
	local script=$TOP/tools/testing/vm/profile.sh
	! CMD='' "$script" && ! PER=0 CMD=true "$script" && ! MARKS=no CMD=true "$script"
}

# Also where a process of it hides from its parent's time-out, and holds the output open.
selftest_ends()
{
	local dir text rc=0
	dir=$(mktemp -d)
	cat >"$dir/hangs" <<-'END'
		#!/usr/bin/python3
		import os, time
		print("ok 1 first", flush=True)
		if not os.fork():
		    os.setpgrp()
		    time.sleep(1000)
		time.sleep(1000)
	END
	chmod +x "$dir/hangs"
	text=$(KSELFTEST_DIR=$dir KSELFTEST_LIMIT=2 SLACK=1 timeout 60 \
		"$TOP/tools/testing/vm/kselftests.sh" hangs) || rc=$?
	echo "$text"
	rm -r "$dir"
	[ $rc = 1 ] && grep -q '^ok 1 hangs: first$' <<<"$text" &&
		grep -q '^not ok 1 hangs: ended with status 137$' <<<"$text"
}

# suites_run STATUS BESIDE PATTERN: a suite of another series waits for what BESIDE builds, the
# one after it does not. run-tests.sh ends with STATUS, and its output fits PATTERN.
suites_run()
{
	local dir rc=0 text
	dir=$(mktemp -d)
	cat >"$dir/suites" <<-END
		vm.newer 7.3/host 60 echo ok 1
		vm.other host 60 echo ok 1; touch $dir/other
	END
	text=$(BASE=6.12 TEST_LOGS=$dir/logs SUITES=$dir/suites ONLY='*' MINUTES='' \
		BESIDE="until [ -e $dir/other ]; do sleep 0.1; done; $2" timeout 900 \
		"$TOP/tools/testing/vm/run-tests.sh" 2>&1) || rc=$?
	echo "$text"
	rm -r "$dir"
	[ $rc = "$1" ] && [[ ${text//$'\n'/ } =~ $3 ]]
}

suites_wait_for_builds()
{
	local told='[|] of this .*ended with status 3, .*: vm[.]newer .*'
	told+='1 passed, 1 failed, 0 skipped'
	suites_run 0 true 'built beside .*vm[.]newer +[0-9]+ passed' &&
		suites_run 1 'echo of this; exit 3' "$told"
}

# A suite of another list takes its command over from a suite of make test.
suites_take_over()
{
	local dir rc=0
	dir=$(mktemp -d)
	echo 'vm.copy host 60 =kernel.file_circles' >"$dir/suites"
	BASE=6.12 TEST_LOGS=$dir/logs SUITES=$dir/suites ONLY='*' MINUTES='' BESIDE='' \
		"$TOP/tools/testing/vm/run-tests.sh" || rc=1
	grep -a 'no file' "$dir/logs/vm.copy.log" || rc=1
	rm -r "$dir"
	return $rc
}

# ci_ends STATUS MAKE...: with this in the place of make, .ci/run ends with STATUS
ci_ends()
{
	local rc=0
	printf '#!/bin/sh\n%s\n' "${*:2}" >"$OUT/ci/bin/make"
	chmod +x "$OUT/ci/bin/make"
	PATH=$OUT/ci/bin:$PATH "$OUT/ci/.ci/run" || rc=$?
	[ $rc = "$1" ]
}

# What make test skips, without the kernel of the other series, is no success of CI.
ci_needs_all_kernels()
{
	local rc=0
	rm -rf "$OUT/ci"
	mkdir -p "$OUT/ci/bin" "$OUT/ci/build/7.3/patched"
	cp -r "$TOP/.ci" "$OUT/ci"
	ci_ends 1 exit 0 && ci_ends 2 exit 2 &&
		ci_ends 0 touch build/7.3/patched/bzImage && ci_ends 2 exit 2 || rc=1
	rm -r "$OUT/ci"
	return $rc
}

bad_words()
{
	! ACCEL=fast CMD=true "$VM" && ! VARIANT=none CMD=true "$VM"
}

# What make is told comes to the script as it is: quotes, and a $ that is the shell's.
make_reads_nothing()
{
	local dir name target word
	word="it's \"a\" b\$x \$(shell echo read)"
	dir=$(mktemp -d)
	# shellcheck disable=SC2016 # for the scripts
	for name in deps.sh build.sh vm.sh profile.sh deb.sh run-tests.sh; do
		printf '#!/bin/sh\necho "$CMD|$APPEND|$ONLY|$CONFIG" >"$SAID"\n' >"$dir/$name"
		chmod +x "$dir/$name"
	done
	unset MAKEFLAGS MAKEOVERRIDES
	# Of the environment, and of the command line.
	while read -r target name; do
		env "$name=$word" SAID="$dir/1" make -s -C "$TOP" VM="$dir" "$target"
		SAID=$dir/2 make -s -C "$TOP" VM="$dir" "$target" "$name=$word"
		cat "$dir/2"
		cmp "$dir/1" "$dir/2" || break
		grep -F "$word" "$dir/1" || break
	done <<-END
		vm CMD
		vm APPEND
		profile CMD
		test ONLY
		deb CONFIG
	END
	rm -r "$dir"
	[ -z "$target" ]
}

# What was built is kept, and comes back whole into a tree in which nothing was built.
products_are_kept()
{
	local dir rc=0
	dir=$(mktemp -d "$BUILD/products.XXXXXX")
	keeps_products "$dir" || rc=$?
	rm -rf "$dir"
	return $rc
}

keeps_products()
(
	dir=$1 built=$BUILD/patched want=$BUILD/patched/kernel/.want PRODUCTS=$1/kept VM=${VM%/*}
	# shellcheck source=tools/testing/vm/products.sh
	. "$VM/products.sh"
	options() { cat "$want"; }
	key=$(kernel_key patched) perf=$(perf_key patched)
	echo "kernel $key, perf $perf"
	is_built kernel patched "$key" && is_built perf patched "$perf" &&
		[ "$key" != "$(KCFLAGS=-Og kernel_key patched)" ] &&
		[ "$key" != "$(options() { sed '$d' "$want"; }; kernel_key patched)" ] &&
		[ "$key" != "$(kernel_key base)" ] && [ "$perf" != "$(perf_key base)" ] &&
		[ "$perf" != "$(NO_LIBDW=1 perf_key patched)" ] || exit
	keep_products kernel patched "$key" && keep_products perf patched "$perf" || exit
	BUILD=$dir/1
	take_products kernel patched "$key" && is_built kernel patched "$key" &&
		take_products perf patched "$perf" && is_built perf patched "$perf" &&
		cmp "$built/kernel/vmlinux" "$BUILD/patched/kernel/vmlinux" &&
		diff -r "$built/test_modules" "$BUILD/patched/test_modules" &&
		diff -r "$built/bin" "$BUILD/patched/bin" || exit
	# A tree with objects, others than were kept, and an archive that is cut off
	! take_products kernel patched "$key" || exit
	BUILD=$dir/2
	! take_products kernel patched "${key//[0-9]/a}" || exit
	truncate -s -100 "$dir/kept/$key.tar.zst"
	! take_products kernel patched "$key" && [ ! -e "$BUILD/patched/kernel" ] &&
		[ ! -e "$dir/kept/$key.tar.zst" ]
)

tap_run "the guest sees the host's files, its own /tmp and OUT; its status comes through" guest_view
tap_run "a command without an end is stopped with status 124" time_out
tap_run "a machine that dies gives 99" dead_machine
tap_run "a machine that dies says of what" oops_told
tap_run "a kernel WARNING gives 99 whatever the command said" warning_seen
tap_run "a kernel WARNING that is expected must come" expected_seen
tap_run "leaked kernel memory gives 99" leak_seen
tap_run "an interrupt leaves no QEMU behind" interrupt
tap_run "a profile counts each instruction, by function" profile_counts
tap_run "a profile of nothing, or divided by nothing, is refused" profile_refuses
tap_run "a selftest that hangs ends, with all its processes" selftest_ends
tap_run "suites of another series wait for its kernel, which is built beside others" \
	suites_wait_for_builds
tap_run "a list takes suites of make test over" suites_take_over
tap_run "CI fails where nothing of another series was tested" ci_needs_all_kernels
tap_run "unknown accelerators and variants are refused" bad_words
tap_run "kernel and perf that were built are kept for a fresh tree" products_are_kept
tap_run "make hands on what it is told as it is" make_reads_nothing
tap_end
