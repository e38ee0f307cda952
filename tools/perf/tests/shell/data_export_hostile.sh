#!/bin/bash
# perf data convert: broken recordings
# SPDX-License-Identifier: GPL-2.0
#
# Recordings that were cut short, or in which bytes are wrong, end perf data convert
# neither by a signal nor in a loop. What it writes can be read; where it fails it leaves
# no file. The recordings are those in $EXPORT_RECORDINGS, separated by spaces, or made up.
# With PERF built with AddressSanitizer its complaints about the converters fail the test.
set -euo pipefail

PERF=${PERF:-perf}
COUNT=${HOSTILE_COUNT:-20}
FIRST=${HOSTILE_SEED:-0}
READ=$(dirname "$0")/lib/read_profile.py

if ! command -v python3 >/dev/null; then
	echo "skip: no python3"
	exit 2
fi
if "$PERF" data convert --to-pprof /dev/null -f -i /dev/null 2>&1 | grep -q 'without protobuf-c'
then
	echo "skip: perf was built without protobuf-c"
	exit 2
fi

export ASAN_OPTIONS=detect_leaks=0:exitcode=99
dir=$(mktemp -d /tmp/perf-export-hostile.XXXXXX)
trap 'rm -rf "$dir"' EXIT
READ=$(realpath "$READ")
read -ra recordings <<<"${EXPORT_RECORDINGS:-}"
[ ${#recordings[@]} = 0 ] || mapfile -t recordings < <(realpath "${recordings[@]}")
written=0
refused=0
others=0

if [ ${#recordings[@]} = 0 ]; then
	"$PERF" bench internals ordered-events -o "$dir/made-up" -c 3 -r 10 -n 20 -p 3 -e 2 -s 100 \
		>/dev/null
	recordings=("$dir/made-up")
	if "$PERF" record -q -g -e cpu-clock:u -F 999 -o "$dir/own" -- \
			"$PERF" test -w noploop 1 >/dev/null 2>&1; then
		recordings+=("$dir/own")
	fi
fi

# break_file SEED FROM TO: damage a copy, in a way that the seed decides
break_file()
{
	python3 - "$@" <<-'END'
	import random, struct, sys
	random.seed(int(sys.argv[1]))
	with open(sys.argv[2], 'rb') as f:
	    data = bytearray(f.read())
	attrs, start, size = (struct.unpack_from('<Q', data, at)[0] for at in (24, 40, 48))
	body = range(start, min(start + size, len(data)))
	kind = random.randrange(4)
	if kind == 0:
	    del data[random.randrange(len(data)):]
	elif kind == 1:
	    # anywhere, headers and formats of tracepoints included
	    for _ in range(random.choice((1, 8, 64))):
	        data[random.randrange(len(data))] ^= 1 << random.randrange(8)
	elif kind == 2 and len(body):
	    # in the records
	    for _ in range(random.choice((1, 16, 256))):
	        data[random.choice(body)] = random.choice((0, 1, 0x7f, 0x80, 0xff))
	elif len(body) > 8:
	    # words of the records
	    for _ in range(random.choice((1, 16))):
	        at = random.choice(body[:-8]) & ~7
	        struct.pack_into('<Q', data, at, random.choice(
	            (0, 1, 0xffff, 2**31, 2**32 - 1, 2**63, 2**64 - 1, random.getrandbits(64))))
	with open(sys.argv[3], 'wb') as f:
	    f.write(data)
	END
}

died()
{
	case $1 in
	99|124|126|127|13[0-9]|14[0-9]) return 0 ;;
	esac
	return 1
}

# Does perf report end in the same way? Then it is not the converters.
report_dies()
{
	local status=0

	timeout 120 "$PERF" report --stdio -i broken >/dev/null 2>&1 </dev/null || status=$?
	died $status
}

# try FORMAT NAME
try()
{
	local status=0

	rm -f out
	timeout 120 "$PERF" data convert --to-"$1" out -i broken >said 2>&1 </dev/null || status=$?
	if died $status; then
		if { [ $status = 99 ] && ! grep -qE '#[0-3] .*util/export/' said; } ||
				report_dies; then
			others=$((others + 1))
			return 0
		fi
		tail -n 40 said
		echo "status $status: $1 of $2"
		return 1
	fi
	if [ $status = 0 ]; then
		written=$((written + 1))
		if ! python3 "$READ" sums "$1" out >summed 2>complaint; then
			tail -n 5 complaint
			echo "cannot be read: $1 of $2"
			return 1
		fi
	else
		refused=$((refused + 1))
		if [ -e out ]; then
			echo "failed with status $status, and left a file: $1 of $2"
			return 1
		fi
	fi
}

cd "$dir"
# What is not broken can be converted.
for recording in "${recordings[@]}"; do
	for format in pprof otlp perfetto; do
		"$PERF" data convert --to-$format out -f -i "$recording" >said 2>&1 </dev/null ||
			{ cat said; exit 1; }
	done
done
for ((seed = FIRST; seed < FIRST + COUNT; seed++)); do
	for recording in "${recordings[@]}"; do
		break_file "$seed" "$recording" broken
		for format in pprof otlp perfetto; do
			try $format "$recording, seed $seed" || {
				[ -z "${KEEP_BROKEN:-}" ] || cp broken "$KEEP_BROKEN"
				exit 1
			}
		done
	done
done
echo "$written written, $refused refused, $others ended in what is not the converters'"
# A test that nothing gets through tests nothing.
[ "$written" -gt 0 ] && [ $((written + refused)) -gt "$others" ]
