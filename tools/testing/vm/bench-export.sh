#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# What perf data convert costs, beside perf report and gecko.py, which writes the stacks of
# each thread for the Firefox Profiler: CPU time (user and system) and peak of memory, for
# a recording of the host's own perf bench with call chains. No kernel is needed.
# SAMPLES is how many samples it has at least (500000), RUNS how often each runs (3).
set -euo pipefail
# shellcheck source=tools/testing/vm/lib.sh
. "${BASH_SOURCE[0]%/*}/lib.sh"

PERF=$BUILD/patched/bin/perf
samples=${SAMPLES:-500000}
dir=$(mktemp -d "${TMPDIR:-/tmp}/perf-bench-export.XXXXXX")
trap 'rm -rf "$dir"' EXIT
cd "$dir"
export HOME=$dir PERF_BUILDID_DIR=$dir

# measure COMMAND...: CPU seconds and peak in KB; the best of $RUNS
measure()
{
	local i

	for ((i = 0; i < ${RUNS:-3}; i++)); do
		command time -a -o measured."$i" -f '%U %S %M' "$@" >/dev/null 2>said ||
			{ tail -n 5 said >&2; die "failed: $*"; }
	done
	cat measured.* | awk '{ print $1 + $2, $3 }' | sort -n | head -n1
	rm -f measured.*
}

"$PERF" record -q -g -F 25000 -m 4M -e cpu-clock:u -o part -- \
	"$PERF" bench internals ordered-events -c 64 -r 50 -l 3 >/dev/null 2>&1 ||
	die "this host does not let perf record"
# The same samples again and again, one after the other in time, until there are enough.
python3 - part data "$samples" <<'END'
import struct, sys
with open(sys.argv[1], 'rb') as f:
    file = bytearray(f.read())
start, size = struct.unpack_from('<QQ', file, 40)
body, other, at = [], [], start
while at < start + size:
    kind, _, length = struct.unpack_from('<IHH', file, at)
    (body if kind == 9 else other).append(bytes(file[at:at + length]))
    at += length
# sample_type IP|TID|TIME|...: the time is the third word
times = [struct.unpack_from('<Q', r, 24)[0] for r in body]
order = sorted(range(len(body)), key=times.__getitem__)
span = max(times) - min(times) + 1000
# The task must not exit before its last sample.
other = [r for r in other if struct.unpack_from('<I', r)[0] not in (4, 68)]
out = bytearray(b''.join(other))
n = turn = 0
while n < int(sys.argv[3]):
    for i in order:
        record = bytearray(body[i])
        struct.pack_into('<Q', record, 24, times[i] + turn * span)
        out += record
    n += len(order)
    turn += 1
    out += struct.pack('<IHH', 68, 0, 8)
tail = file[start + size:]
moved = len(out) - size
struct.pack_into('<Q', file, 48, len(out))
# The sections of the features lie behind the data.
for at in range(0, 16 * 40, 16):
    if at + 16 > len(tail):
        break
    where, length = struct.unpack_from('<QQ', tail, at)
    if start + size <= where <= len(file):
        struct.pack_into('<QQ', tail, at, where + moved, length)
    else:
        break
with open(sys.argv[2], 'wb') as f:
    f.write(file[:start] + out + tail)
print(n, 'samples,', len({r[8:16] + r[32:] for r in body}), 'distinct')
END

printf '%-10s %12s %10s\n' what 'CPU seconds' 'peak KB'
report=$(measure "$PERF" report --stdio -i data)
# shellcheck disable=SC2086 # two words
printf '%-10s %12s %10s\n' report $report
for format in pprof otlp perfetto; do
	own=$(measure "$PERF" data convert --to-$format out -f -i data)
	# shellcheck disable=SC2086
	printf '%-10s %12s %10s\n' $format $own
	awk -v own="${own% *}" -v report="${report% *}" -v format=$format 'BEGIN {
		if (own > 1.5 * report)
			print "! " format ": more than 1.5 times perf report"
	}'
	[ $format != pprof ] || pprof=$own
done
gecko=$(measure "$PERF" script -i data \
	-s "$BUILD/patched/src/tools/perf/scripts/python/gecko.py" -- --save-only out.json)
# shellcheck disable=SC2086
printf '%-10s %12s %10s\n' gecko.py $gecko
awk -v own="${pprof% *}" -v gecko="${gecko% *}" \
	'BEGIN { printf "gecko.py takes %.1f times the CPU time of --to-pprof\n", gecko / own
		 if (gecko < 10 * own) print "! less than 10 times" }'

# Do both have the same samples?
"$PERF" data convert --to-pprof out -f -i data 2>/dev/null
"$TOP/tools/perf/tests/shell/lib/read_profile.py" sums pprof out |
	awk '{ n += $(NF - 1) } END { print n, "samples in the profile" }'
python3 -c '
import json, sys
threads = json.load(open(sys.argv[1]))["threads"]
print(sum(len(t["samples"]["data"]) for t in threads), "samples of gecko.py")' out.json
