#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Compare the flight recorder (perf record -M, also with --overwrite) with the
# corresponding features of the base:
#
#	build		percentage of user samples with a name and a file, of processes that
#			exited before the dump: make -j2 runs PROCESSES short ones; base:
#			--overwrite
#	long		the same for one process that runs for seconds and exits just before
#	cpu		CPU time of the recorder for the same events, in us; base: perf
#			record to a file
#	gap		percentage of dumps with a gap in the numbers that a program counts
#			up; base: --overwrite
#	signal		time from the signal to the complete file, in ms, according to the
#			time stamp of its rename; base: --overwrite --switch-output=signal
#	idle	CPU time of the recorder of all system calls on an idle machine, in us per
#		second; base: perf record to a file
#	window	how far a dump of that reaches back after 5 s, with 16 MiB, in ms; base:
#		--overwrite with as much memory
#	own	percentage of the samples in it that the recorder has caused
#
# All cases run in the same guest, so only perf differs. Files are on its /tmp.
#
# usage: bench-flight.sh		on the host; RUNS=5 PROCESSES=2000 DUMPS=200
#					PARTS="resolved cpu gaps signal self"
#	 bench-flight.sh guest		in the guest; prints "VARIANT CASE NUMBER" lines
#
# Fails if samples are not resolved or a dump has a gap. Times are printed and compared with
# their expected values.
set -euo pipefail
# shellcheck source=tools/testing/vm/lib.sh
. "${BASH_SOURCE[0]%/*}/lib.sh"

export RUNS=${RUNS:-5} PROCESSES=${PROCESSES:-2000} DUMPS=${DUMPS:-200}
export PARTS=${PARTS:-resolved cpu gaps signal self}
VARIANTS=(base patched overwrite)
FLIGHT=$BUILD/patched/bin/perf
BASE_PERF=$BUILD/base/bin/perf
WORK=/tmp/bench
CLOSES=(-e syscalls:sys_enter_close --filter 'fd >= 1000000 && fd < 2000000000')
pid=

# start PATTERN COMMAND...: sets $pid when PATTERN has been printed
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

# start_keeping VARIANT SIZE OPTION...: keep the newest records, SIZE KiB for each of 2 CPUs
start_keeping()
{
	local variant=$1 size=$2
	shift 2
	case $variant in
	base)
		# -v prints when it has started; it is ready for dumps a little later
		start 'mmap size' "$BASE_PERF" record -v -a -o "$WORK/d" --overwrite \
			--switch-output=signal -m "${size}K" "$@"
		sleep 3 ;;
	patched)
		start 'flight recorder [0-9]' "$FLIGHT" record -M $((2 * size))K -a \
			-o "$WORK/d" "$@" ;;
	overwrite)
		start 'flight recorder [0-9]' "$FLIGHT" record -M $((3 * size))K -a \
			--overwrite -o "$WORK/d" "$@" ;;
	esac
}

stop()
{
	kill -INT "$pid"
	wait "$pid" 2>/dev/null || true
}

# Sleep without another process, which would be recorded and use CPU time of the
# measurement.
idle()
{
	read -rt "$1" -u 7 || true
}

# Trigger a dump with a signal and wait for its file, which is renamed when complete.
dump()
{
	local signal=USR1 pattern='d.sample.*.json' i
	if [ "$1" = base ]; then
		signal=USR2 pattern='d.2*'
	fi
	kill -"$signal" "$pid"
	for ((i = 0; i < 3000; i++)); do
		for dump in "$WORK"/$pattern; do
			dump=${dump%.json}
			[ ! -e "$dump" ] || return 0
		done
		idle 0.02
	done
	cat "$WORK/log" >&2
	die "no dump"
}

# Imitate a build: sh, sed, grep, sort and tr, five processes for each target
build()
{
	cat >"$WORK/Makefile" <<-'END'
		TARGETS := $(shell seq 1 $(N))
		all: $(TARGETS)
		.PHONY: $(TARGETS)
		$(TARGETS): ; @sed -e 's/a/b/g' Makefile | grep -n . | sort -r | tr a-z A-Z >out.$@
	END
	make -s -C "$WORK" -j2 N=$((PROCESSES / 5))
}

# Percentage of the user samples of exited processes; [PID]: of that process
resolved()
{
	"$BASE_PERF" script -i "$1" -F comm,pid,ip,sym,dso 2>/dev/null | python3 -c '
import os, re, sys
line_of = re.compile(r"^\s*(.*?)\s+(\d+)\s+[0-9a-f]+ .*\((.*)\)$")
n = bad = 0
for line in sys.stdin:
    m = line_of.match(line)
    if not m or m[2] == "0" or os.path.exists("/proc/" + m[2]):
        continue
    if len(sys.argv) > 1 and m[2] != sys.argv[1]:
        continue
    n += 1
    bad += m[1].startswith(":") or m[3] == "[unknown]"
print("%.3f" % (100 * (n - bad) / n if n else 0))
print(n, "samples", bad, "unresolved", file=sys.stderr)' "${@:2}"
}

part_resolved()
{
	local variant long i
	for ((i = 0; i < RUNS; i++)); do
		for variant in "${VARIANTS[@]}"; do
			start_keeping "$variant" 16384 -e cpu-clock:u -F 499
			build
			dump "$variant"
			echo "$variant build $(resolved "$dump")"
			rm -f "$dump"*
			"$BASE_PERF" test -w noploop 5 &
			long=$!
			wait $long
			dump "$variant"
			echo "$variant long $(resolved "$dump" $long)"
			stop
		done
	done
}

# In microseconds; in clock ticks if the kernel has nothing better
cpu_time()
{
	if [ -r "/proc/$pid/schedstat" ]; then
		awk '{ print int($1 / 1000) }' "/proc/$pid/schedstat"
	else
		awk '{ print ($14 + $15) * 10000 }' "/proc/$pid/stat"
	fi
}

# count N: N system calls with increasing numbers; 0: until $WORK/enough exists. On one CPU,
# because the buffers of two CPUs do not reach back equally far.
count()
{
	taskset -c 1 python3 "$TOP/tools/perf/tests/shell/lib/close_files.py" 1000000 \
		$((1000000 + ($1 ? $1 : 900000000))) "$WORK/enough"
}

part_cpu()
{
	local variant before i
	for ((i = 0; i < RUNS; i++)); do
		for variant in "${VARIANTS[@]}"; do
			if [ "$variant" = base ]; then
				start 'mmap size' "$BASE_PERF" record -v -a -o "$WORK/d" \
					"${CLOSES[@]}"
				sleep 3
			else
				start_keeping "$variant" 4096 "${CLOSES[@]}"
			fi
			# Fill the memory once: measure the steady state, not the start.
			count 200000
			before=$(cpu_time)
			count 200000
			echo "$variant cpu $(($(cpu_time) - before))"
			stop
		done
	done
}

part_signal()
{
	local variant t0 t1 i
	for ((i = 0; i < RUNS; i++)); do
		for variant in "${VARIANTS[@]}"; do
			start_keeping "$variant" 8192 "${CLOSES[@]}"
			count 50000
			t0=${EPOCHREALTIME/[.,]/}
			dump "$variant"
			t1=$(stat -c %.6Z "$dump")
			echo "$variant signal $(((${t1/[.,]/} - t0) / 1000))"
			stop
		done
	done
}

# 0 if a dump has no gap in the numbers, else 100
gap()
{
	"$BASE_PERF" script -i "$1" -F trace 2>/dev/null | python3 -c '
import re, sys
numbers = [int(x, 16) for x in re.findall(r"fd: 0x([0-9a-f]+)", sys.stdin.read())]
gaps = sum(b != a + 1 for a, b in zip(numbers, numbers[1:]))
print(100 if gaps or len(numbers) < 100 else 0)'
}

part_gaps()
{
	local variant load i
	for variant in "${VARIANTS[@]}"; do
		start_keeping "$variant" 2048 "${CLOSES[@]}"
		count 0 &
		load=$!
		sleep 2
		for ((i = 0; i < DUMPS; i++)); do
			dump "$variant"
			echo "$variant gap $(gap "$dump")"
			rm -f "$dump" "$dump.json"
		done
		touch "$WORK/enough"
		wait $load
		stop
	done
}

# Window in ms and percentage of samples of $pid
window_and_own()
{
	"$BASE_PERF" script -i "$1" -F pid,time --ns 2>/dev/null | awk -v pid="$pid" '
		{ sub(":", "", $2); if (!n++ || $2 < oldest) oldest = $2
		  if ($2 > newest) newest = $2; own += $1 == pid }
		END { printf "%.0f %.3f\n", 1000 * (newest - oldest), n ? 100 * own / n : 0 }'
}

part_self()
{
	local variant before i calls=(-e 'raw_syscalls:*') window own
	for ((i = 0; i < RUNS; i++)); do
		for variant in "${VARIANTS[@]}"; do
			if [ "$variant" = base ]; then
				start 'mmap size' "$BASE_PERF" record -v -a -o "$WORK/d" \
					"${calls[@]}"
				sleep 3
			else
				start_keeping "$variant" 8192 "${calls[@]}"
			fi
			before=$(cpu_time)
			idle 5
			echo "$variant idle $((($(cpu_time) - before) / 5))"
			if [ "$variant" = base ]; then
				stop
				start_keeping base 8192 "${calls[@]}"
				idle 5
			fi
			dump "$variant"
			read -r window own < <(window_and_own "$dump")
			echo "$variant window $window"
			echo "$variant own $own"
			stop
		done
	done
}

guest()
{
	local part
	exec 7<> <(:)
	echo "# files on $(stat -f -c %T /tmp), Linux $(uname -r), $(nproc) CPUs"
	for part in $PARTS; do
		"part_$part"
	done
}

# Convert lines "VARIANT CASE NUMBER" to a table
table()
{
	awk '
	/^#/ { print substr($0, 3); next }
	NF == 3 { n[$1, $2]++; sum[$1, $2] += $3; sq[$1, $2] += $3 * $3
	  if (!seen[$2]++) order[++cases] = $2 }
	function mean(v, c) { return n[v, c] ? sum[v, c] / n[v, c] : 0 }
	function dev(v, c,  m, d) {
		m = mean(v, c)
		d = n[v, c] > 1 ? (sq[v, c] - n[v, c] * m * m) / (n[v, c] - 1) : 0
		return d > 0 ? sqrt(d) : 0
	}
	function cell(v, c) { return sprintf("%10.2f +- %8.2f", mean(v, c), dev(v, c)) }
	function ratio(v, c) { return mean("base", c) ? mean(v, c) / mean("base", c) : 0 }
	# SIGN 1: VALUE must be at least BAR, -1: at most
	function bar(c, v, value, sign, limit, hard,  met) {
		if (!n[v, c])
			return
		met = sign * value >= sign * limit
		printf "%-8s %-10s %8.3f, %s %s: %s\n", c, v, value,
			(sign > 0 ? "at least" : "at most"), limit, (met ? "met" : "MISSED")
		if (!met && hard)
			failed = 1
	}
	END {
		printf "%-8s %22s %22s %22s %9s %9s %4s\n", "", "base", "-M", "-M --overwrite",
			"-M/base", "ov/base", "n"
		for (i = 1; i <= cases; i++) {
			c = order[i]
			printf "%-8s %22s %22s %22s %9.3f %9.3f %4d\n", c, cell("base", c),
				cell("patched", c), cell("overwrite", c),
				ratio("patched", c), ratio("overwrite", c), n["patched", c]
		}
		print "build, long: % resolved; cpu: us; gap: % of dumps; signal, window: ms;",
			"idle: us/s; own: %; mean and standard deviation"
		for (i = 1; i <= split("patched overwrite", v, " "); i++) {
			bar("build", v[i], mean(v[i], "build"), 1, 99, 1)
			bar("long", v[i], mean(v[i], "long"), 1, 99, 1)
			bar("cpu", v[i], ratio(v[i], "cpu"), -1, i == 1 ? 0.7 : 0.05, 0)
			bar("gap", v[i], mean(v[i], "gap"), -1, 0, 1)
			bar("idle", v[i], mean(v[i], "idle"), -1, 10000, 0)
			bar("window", v[i], mean(v[i], "window"), 1, 4500, 0)
			bar("own", v[i], mean(v[i], "own"), -1, 1, 0)
			bar("signal", v[i], ratio(v[i], "signal"), -1, 0.5, 0)
		}
		exit !cases || failed
	}'
}

if [ "${1-}" = guest ]; then
	guest
else
	mkdir -p "$BUILD/bench"
	PASS_ENV="RUNS PROCESSES DUMPS PARTS" CMD="$TOP/tools/testing/vm/${0##*/} guest" \
		VARIANT=patched SMP=2 ACCEL=single TIMEOUT=3600 "$TOP/tools/testing/vm/vm.sh" |
		tee "$BUILD/bench/flight.raw" | table
fi
