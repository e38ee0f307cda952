#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# How long a machine takes to boot if a region has nothing, and if it has the image of a boot that
# died: from the start of the kernel to that of its first program, in ms. Regions of 16 MiB and
# of 512 MiB are compared; a session takes a quarter of each. Guest time counts instructions.
#
# usage: bench-blackbox.sh		on the host; RUNS=3
#	 bench-blackbox.sh guest SIZE	in the guest, with a session of SIZE
#
# Fails if an image makes the boot of the large region longer by more than 0.1 % of what it makes
# that of the small one.
set -euo pipefail
# shellcheck source=tools/testing/vm/lib.sh
. "${BASH_SOURCE[0]%/*}/lib.sh"

RUNS=${RUNS:-3}
# MiB of the region, and of the session
SIZES=("16 4" "512 128")

boot_time()
{
	dmesg | sed -nE 's/^\[ *([0-9.]+)\] Run .* as init process$/\1/p'
}

# At each of two boots
guest()
{
	if [ ! -e "$OUT/empty" ]; then
		boot_time >"$OUT/empty"
		perf record -q -P box --reserve box -m "$1" -e raw_syscalls:sys_enter -a
		sync
		echo b >/proc/sysrq-trigger
		sleep 600
	fi
	perf ctl -l | grep -q '^box.* yes  *reset '
	boot_time >"$OUT/image"
	while [ ! -e "$OUT/seen" ]; do
		sleep 0.1
	done
}

# run REGION SESSION: prints the time of both boots
run()
{
	local vm
	rm -rf "$OUT"
	mkdir -p "$OUT"
	CMD="$TOP/tools/testing/vm/${0##*/} guest ${2}M" VARIANT=patched ICOUNT=1 SMP=1 \
		ACCEL=single MEM=2G APPEND="reserve_mem=${1}M:4096:box perf_persistent=@box" \
		QEMU_EXTRA="-action reboot=reset -qmp unix:$OUT/qmp,server=on,wait=off" \
		"$TOP/tools/testing/vm/vm.sh" >"$OUT/log" 2>&1 &
	vm=$!
	# At its end, a machine of the tests restarts: the second time is the end.
	while [ ! -s "$OUT/image" ] && kill -0 $vm 2>/dev/null; do
		sleep 0.2
	done
	qmp "set-action \"reboot\": \"shutdown\"" >"$OUT/qmp.said" 2>&1 || true
	touch "$OUT/seen"
	if ! wait $vm; then
		cat "$OUT/log" >&2
		die "the guest with a region of $1 MiB failed"
	fi
	echo "$1 $(cat "$OUT/empty") $(cat "$OUT/image")"
}

host()
{
	local i size
	for ((i = 0; i < RUNS; i++)); do
		for size in "${SIZES[@]}"; do
			# shellcheck disable=SC2086 # two words
			run $size
		done
	done | awk '
	{ n[$1]++; empty[$1] += $2; image[$1] += $3; if (n[$1] == 1) order[++sizes] = $1 }
	END {
		printf "%10s %12s %12s %12s\n", "MiB", "empty, ms", "image, ms", "more, ms"
		for (i = 1; i <= sizes; i++) {
			s = order[i]
			more[i] = 1000 * (image[s] - empty[s]) / n[s]
			printf "%10d %12.3f %12.3f %12.3f\n", s, 1000 * empty[s] / n[s],
				1000 * image[s] / n[s], more[i]
		}
		exit sizes != 2 || more[2] - more[1] > empty[order[1]] / n[order[1]]
	}'
}

if [ "${1-}" = guest ]; then
	guest "$2"
else
	export OUT=${OUT:-$BUILD/out/bench-blackbox} TIMEOUT=${TIMEOUT:-300}
	host
fi
