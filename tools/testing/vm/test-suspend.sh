#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A recorder and sessions on a machine that is suspended to RAM; STATES="mem freeze": and to idle.
#
# Virtio's 9p does not survive a suspend: its driver has no restore callback. So all that is
# needed is copied into a tmpfs before, which becomes the root of the test.
#
# Builds the variant patched_preempt, whose kernel can suspend.
# usage: test-suspend.sh		on the host
#	 test-suspend.sh guest STATE	in the guest
set -euo pipefail
# shellcheck source=tools/testing/vm/lib.sh
. "${BASH_SOURCE[0]%/*}/lib.sh"

SHELL_TESTS=$BUILD/patched/src/tools/perf/tests/shell
PROGRAMS=(bash sh env cat cut date grep sed awk sort uniq tail head wc seq tr find ls ln mkdir rm
	mktemp sleep touch stat mount umount mountpoint timeout taskset pgrep pkill xargs id
	getconf nice dirname basename chmod rmdir mkfifo python3 socat setpriv uname)
ROOT=/tmp/root

# copy_programs PATH...: with the libraries that they need
copy_programs()
{
	local libraries

	mapfile -t libraries < <(ldd "$@" | grep -v ':$' | grep -oE '/[^ :]+\.so[^ :]*' | sort -u)
	cp -L --parents "$@" "${libraries[@]}" "$ROOT"
}

make_root()
{
	local dir program paths=("$BUILD/patched/bin/perf" "$BUILD/base/bin/perf") modules

	mkdir -p "$ROOT/usr" "$ROOT/proc" "$ROOT/sys" "$ROOT/dev" "$ROOT/tmp" "$ROOT/run"
	for dir in bin sbin lib lib64; do
		mkdir -p "$ROOT/usr/$dir"
		ln -s "usr/$dir" "$ROOT/$dir"
	done
	for program in "${PROGRAMS[@]}"; do
		paths+=("$(command -v "$program")")
	done
	modules=$(python3 -c 'import os; print(os.path.dirname(os.__file__))')
	mapfile -t -O "${#paths[@]}" paths < <(find "$modules/lib-dynload" -name '*.so')
	copy_programs "${paths[@]}"
	tar -C / -c --exclude=dist-packages --exclude='test*' --exclude='*.a' "${modules#/}" |
		tar -C "$ROOT" -x
	cp -r --parents "$SHELL_TESTS" "$ROOT"
	for dir in proc sys dev; do
		mount --rbind "/$dir" "$ROOT/$dir"
	done
}

guest()
{
	make_root
	cd /
	exec chroot "$ROOT" env PATH="$BUILD/patched/bin:$PATH" FLIGHT_SUSPEND="$1" \
		"$SHELL_TESTS/record_flight_suspend.sh"
}

if [ "${1-}" = guest ]; then
	PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:$PATH
	guest "$2"
fi
"$TOP/tools/testing/vm/build.sh" kernel patched_preempt ||
	die "the variant patched_preempt does not build"
rc=0
for state in ${STATES:-mem}; do
	CMD="exec $TOP/tools/testing/vm/${0##*/} guest $state" VARIANT=patched_preempt \
		SMP=2 ACCEL=single MEM=2G APPEND='' ICOUNT='' TIMEOUT=$((600 * ${SLACK:-1})) \
		OUT=$BUILD/out/suspend "$TOP/tools/testing/vm/vm.sh" || rc=1
done
exit $rc
