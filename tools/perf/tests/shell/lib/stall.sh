# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Stalls of a CPU, by the module perf_stall, which the caller has loaded. Sourced, not run.
# They are failures of the machine, so they are made in the test machine alone. PERF_STALL is
# the module.

may_stall()
{
	[ -n "${TEST_MACHINE:-}" ] && [ -e "${PERF_STALL:-/none}" ]
}

# stall NAME KIND MS: a process of that name does; the other CPU goes on
stall()
{
	taskset 2 python3 - "$@" <<-'END'
		import os, sys
		open("/proc/self/comm", "w").write(sys.argv[1])
		print("stalls as", os.getpid(), flush=True)
		fd = os.open("/dev/perf_stall", os.O_WRONLY)
		os.write(fd, " ".join(sys.argv[2:]).encode())
	END
}

# The interrupts of devices go to the CPU that is not stalled: what reads files
# meanwhile would wait for the disk.
spare_devices()
{
	local irq

	for irq in /proc/irq/[0-9]*; do
		echo 1 >"$irq/smp_affinity" 2>/dev/null || true
	done
}
