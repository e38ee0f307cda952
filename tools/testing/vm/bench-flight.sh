#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The flight recorder (perf record -M) beside what the base has for its purpose:
#
#	resolved	user samples of processes that exited before the dump, and that
#			have a name and a file in it: per cent; base: --overwrite
#	cpu		CPU time of the recorder for the same events, in us; base:
#			perf record to a file
#	signal		from the signal to the complete file, in ms; base: --overwrite
#			--switch-output=signal
#
# All of it in one guest, so that only perf differs; files are on its /tmp, a tmpfs.
#
# usage: bench-flight.sh		on the host; RUNS=5 PROCESSES=2000
#	 bench-flight.sh guest		in the guest; prints "VARIANT CASE NUMBER" lines
set -euo pipefail
# shellcheck source=tools/testing/vm/lib.sh
. "${BASH_SOURCE[0]%/*}/lib.sh"

RUNS=${RUNS:-5}
PROCESSES=${PROCESSES:-2000}
FLIGHT=$BUILD/patched/bin/perf
BASE=$BUILD/base/bin/perf
WORK=/tmp/bench
pid=

# start VARIANT PATTERN COMMAND...: sets $pid when PATTERN has been printed
start()
{
	local pattern=$1 i
	shift
	rm -rf "$WORK"
	mkdir -p "$WORK"
	: >"$WORK/log"
	"$@" >>"$WORK/log" 2>&1 &
	pid=$!
	for ((i = 0; i < 600; i++)); do
		! grep -q "$pattern" "$WORK/log" || return 0
		sleep 0.1
	done
	cat "$WORK/log" >&2
	die "not ready: $*"
}

start_flight()
{
	start 'flight recorder [0-9]' "$FLIGHT" record -M "${MEMORY:-64M}" -a -o "$WORK/d" "$@"
}

# -vvv tells when it has started, but slows it down: it is ready a little later
start_base()
{
	start 'mmap size' "$BASE" record -v -a -o "$WORK/d" "$@"
	sleep 3
}

stop()
{
	kill -INT "$pid"
	wait "$pid" 2>/dev/null || true
}

# The file of the dump that a signal asks for
wait_dump()
{
	local signal=$1 pattern=$2 i
	kill -"$signal" "$pid"
	for ((i = 0; i < 6000; i++)); do
		dump=$(find "$WORK" -name "$pattern" | head -n1)
		[ -z "$dump" ] || return 0
		sleep 0.01
	done
	die "no dump"
}

dump_flight()
{
	wait_dump USR1 'd.sample.*.json'
	dump=${dump%.json}
}

dump_base()
{
	wait_dump USR2 'd.2*'
}

load()
{
	local i
	for ((i = 0; i < PROCESSES; i++)); do
		sh -c 'i=0; while [ $i -lt 400 ]; do i=$((i + 1)); done'
	done
	sh -c 'i=0; while [ $i -lt 200000 ]; do i=$((i + 1)); done'
}

# Samples of sh: how many have a name and a file?
resolved()
{
	"$BASE" script -i "$1" -F comm,ip,sym,dso 2>/dev/null |
		awk '!/perf|bash|sleep|bench-flight/ { n++; if (/\[unknown\]\)|^ *:[0-9]/) bad++ }
		     END { printf "%.2f\n", n ? 100 * (n - bad) / n : 0 }'
}

# In microseconds; by clock ticks where the kernel does not tell better
cpu_time()
{
	if [ -r "/proc/$pid/schedstat" ]; then
		awk '{ print int($1 / 1000) }' "/proc/$pid/schedstat"
	else
		awk '{ print ($14 + $15) * 10000 }' "/proc/$pid/stat"
	fi
}

calls()
{
	python3 - <<-END
		import os, time
		for fd in range(1000000, 1200000):
		    try:
		        os.close(fd)
		    except OSError:
		        pass
		    if fd % 200 == 0:
		        time.sleep(0.002)
	END
}

guest()
{
	local i variant before t0
	for variant in base patched; do
		if [ $variant = base ]; then
			start_base -e cpu-clock:u -F 499 --overwrite --switch-output=signal -m 8M
			load
			dump_base
		else
			start_flight -e cpu-clock:u -F 499
			load
			dump_flight
		fi
		echo "$variant resolved $(resolved "$dump")"
		stop
	done
	for ((i = 0; i < RUNS; i++)); do
		for variant in base patched; do
			if [ $variant = base ]; then
				start_base -e syscalls:sys_enter_close
			else
				MEMORY=8M start_flight -e syscalls:sys_enter_close
			fi
			# Once round the memory: it is about the weeks, not the start.
			calls
			before=$(cpu_time)
			calls
			echo "$variant cpu $(($(cpu_time) - before))"
			stop
			if [ $variant = base ]; then
				start_base -e syscalls:sys_enter_close --overwrite \
					--switch-output=signal -m 8M
				calls
				t0=$(date +%s%N)
				dump_base
			else
				start_flight -e syscalls:sys_enter_close
				calls
				t0=$(date +%s%N)
				dump_flight
			fi
			echo "$variant signal $((($(date +%s%N) - t0) / 1000000))"
			stop
		done
	done
}

# Lines "VARIANT CASE NUMBER" to a table
table()
{
	awk '
	{ n[$1, $2]++; sum[$1, $2] += $3; sq[$1, $2] += $3 * $3
	  if (!seen[$2]++) order[++cases] = $2 }
	function mean(v, c) { return sum[v, c] / n[v, c] }
	function dev(v, c,  m, d) {
		m = mean(v, c)
		d = n[v, c] > 1 ? (sq[v, c] - n[v, c] * m * m) / (n[v, c] - 1) : 0
		return d > 0 ? sqrt(d) : 0
	}
	END {
		printf "%-10s %20s %20s %8s %3s\n", "", "base", "patched", "ratio", "n"
		for (i = 1; i <= cases; i++) {
			c = order[i]
			printf "%-10s %10.2f +- %6.2f %10.2f +- %6.2f %8s %3d\n", c,
				mean("base", c), dev("base", c),
				mean("patched", c), dev("patched", c),
				mean("base", c) ?
				sprintf("%.2f", mean("patched", c) / mean("base", c)) : "-",
				n["patched", c]
		}
		print "resolved: %; cpu: us; signal: ms; mean and standard deviation; /tmp is tmpfs"
	}'
}

if [ "${1-}" = guest ]; then
	guest
else
	export RUNS PROCESSES
	PASS_ENV="RUNS PROCESSES" CMD="$TOP/tools/testing/vm/${0##*/} guest" VARIANT=patched \
		SMP=2 ACCEL=single TIMEOUT=1800 "$TOP/tools/testing/vm/vm.sh" | table
fi
