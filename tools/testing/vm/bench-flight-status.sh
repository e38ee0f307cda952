#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# How long a flight recorder takes to answer "status" while 64 clients ask at once, again and
# again, and its ring is full. Time follows the instructions of the guest, one for each
# nanosecond, those of the clients included. Also the recorder's CPU time for each answer.
#
# usage: bench-flight-status.sh		on the host; RUNS=5
#	 bench-flight-status.sh guest	in the guest; prints "MEDIAN LONGEST OWN" lines, in ms
#
# Fails if an answer takes more than 10 ms.
set -euo pipefail
# shellcheck source=tools/testing/vm/lib.sh
. "${BASH_SOURCE[0]%/*}/lib.sh"

export RUNS=${RUNS:-5}
WORK=/tmp/status

# In ns
cpu_time()
{
	local used _
	read -r used _ <"/proc/$1/schedstat"
	echo "$used"
}

# 10 times 64 answers, all of whose requests are sent before the first of them is read
ask()
{
	python3 - "$WORK/socket" <<-'END'
		import gc, json, socket, sys, time

		clients = [socket.socket(socket.AF_UNIX) for _ in range(64)]
		for c in clients:
		    c.connect(sys.argv[1])
		waits = []
		gc.disable()
		for _ in range(10):
		    starts, ends, answers = [], [], []
		    for c in clients:
		        starts.append(time.monotonic())
		        c.send(b'status\n')
		    for c in clients:
		        answers.append(c.recv(4096))
		        ends.append(time.monotonic())
		    for answer in answers:
		        assert json.loads(answer)['ok'], answer
		    waits += [1000 * (end - start) for start, end in zip(starts, ends)]
		waits.sort()
		print('%.2f %.2f' % (waits[len(waits) // 2], waits[-1]), end=' ')
	END
}

guest()
{
	local i pid before
	mkdir -p "$WORK"
	perf record -M 16M -a -e cpu-clock -F 99 -g -e 'raw_syscalls:*' -o "$WORK/d" \
		--trigger "socket:$WORK/socket" 2>"$WORK/log" &
	pid=$!
	for ((i = 0; i < 600; i++)); do
		! grep -q 'flight recorder [0-9]' "$WORK/log" || break
		sleep 0.1
	done
	# 200,000 system calls fill the ring.
	dd if=/dev/zero of=/dev/null bs=1 count=100000 status=none
	for ((i = 0; i < RUNS; i++)); do
		before=$(cpu_time $pid)
		ask
		awk -v ns=$(($(cpu_time $pid) - before)) 'BEGIN { printf "%.3f\n", ns / 640e6 }'
	done
	kill -INT $pid
	wait $pid || true
	[ -n "$(find "$WORK" -name '*.json')" ] || { cat "$WORK/log" >&2; die "no dump"; }
}

if [ "${1-}" = guest ]; then
	guest
	exit
fi

text=$(PASS_ENV=RUNS CMD="$TOP/tools/testing/vm/${0##*/} guest" VARIANT=patched ICOUNT=1 SMP=1 \
	ACCEL=single TIMEOUT=600 "$TOP/tools/testing/vm/vm.sh") || die "the guest failed: $text"
grep -E '^[0-9.]+ [0-9.]+ [0-9.]+$' <<<"$text" | awk -v runs="$RUNS" '
	{ median = $1 > median ? $1 : median; longest = $2 > longest ? $2 : longest
	  own += $3 / runs }
	END {
		printf "status, %d times 640 answers to 64 clients: half of them within %.2f ms, " \
			"all within %.2f ms (limit 10 ms), %.3f ms of the recorder each\n",
			NR, median, longest, own
		exit NR != runs || longest > 10
	}'
