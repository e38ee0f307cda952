#!/bin/bash
# Broken recordings are read as by the unchanged perf
# SPDX-License-Identifier: GPL-2.0
#
# Recordings that were cut short, or in which bits were flipped, sizes and types
# lie or times are nonsense, end perf script neither by a signal nor in a loop,
# and print what the perf in $BASE_PERF prints (where that one survives them).
# With PERF built with AddressSanitizer its complaints fail the test as well.
set -euo pipefail

PERF=${PERF:-perf}
COUNT=${HOSTILE_COUNT:-20}
FIRST=${HOSTILE_SEED:-0}

if [ -z "${BASE_PERF:-}" ] || [ ! -x "$BASE_PERF" ]; then
	echo "skip: BASE_PERF does not name a perf to compare with"
	exit 2
fi
if ! command -v python3 >/dev/null; then
	echo "skip: no python3"
	exit 2
fi

export ASAN_OPTIONS=detect_leaks=0:exitcode=99
dir=$(mktemp -d /tmp/perf-ordered-hostile.XXXXXX)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
checked=0
base_died=0
mended=0
complaints=0

# print PERF TAG: status in $status
print()
{
	status=0
	timeout 300 "$1" script -F comm,tid,cpu,time,event,ip,period --show-task-events \
		-i broken >"$2.out" 2>"$2.err" </dev/null || status=$?
}

# break_file SEED|short FILE [TYPE]: damage it, in a way that the seed decides, or by a record
# of that type without a sample_id, with the rest of a sample as a comm
break_file()
{
	python3 - "$@" <<-'END'
	import random, struct, sys
	with open(sys.argv[2], 'rb') as f:
	    data = bytearray(f.read())
	if sys.argv[1] == 'short':
	    kind = -1
	else:
	    random.seed(int(sys.argv[1]))
	    kind = random.randrange(5)
	if kind == -1:
	    at = data.find(struct.pack('<IHH', 9, 2, 56), len(data) // 2)
	    struct.pack_into('<IHH', data, at, int(sys.argv[3]), 0, 8)
	    struct.pack_into('<IHH', data, at + 8, 3, 0, 48)
	elif kind == 0:
	    del data[random.randrange(len(data)):]
	elif kind == 1:
	    for _ in range(random.choice((1, 8, 64))):
	        data[random.randrange(len(data))] ^= 1 << random.randrange(8)
	elif kind == 2:
	    # a header that lies: type, misc and size of what looks like a sample
	    at = data.find(struct.pack('<IHH', 9, 2, 56), random.randrange(len(data)))
	    if at >= 0:
	        struct.pack_into('<IHH', data, at, random.choice((1, 3, 9, 64, 68, 71, 81, 200)),
	                         random.randrange(65536), random.choice((0, 7, 8, 16, 56, 65535)))
	elif kind == 3:
	    # times from nowhere
	    at = 0
	    while (at := data.find(struct.pack('<IHH', 9, 2, 56), at)) >= 0:
	        if not random.randrange(4):
	            struct.pack_into('<Q', data, at + 32,
	                             random.choice((0, 1, 2**63, 2**64 - 1, 2**64 - 2)))
	        at += 56
	else:
	    # a field of the file's header
	    struct.pack_into('<Q', data, 8 * random.randrange(2, 13),
	                     random.choice((0, 1, 2**31, 2**63, 2**64 - 1, len(data))))
	with open(sys.argv[2], 'wb') as f:
	    f.write(data)
	END
}

# died STATUS: by a signal, a sanitizer or the time-out; perf's own are -errno
died()
{
	case $1 in
	99|124|13[0-9]|14[0-9]) return 0 ;;
	esac
	return 1
}

# check NAME: what the base does not survive either is no news, but for
# sanitizers, which it does not have.
check()
{
	local own_status

	print "$PERF" own
	own_status=$status
	print "$BASE_PERF" base
	# What a sanitizer finds where the base's own code parses an event is the base's.
	if [ "$own_status" = 99 ] && ! grep -qE '#[01] .*(round-merge|ordered-events|session)\.c' \
			own.err; then
		complaints=$((complaints + 1))
		grep -m1 -E '^SUMMARY|runtime error' own.err || true
		return 0
	fi
	if died "$own_status"; then
		if died "$status" && [ "$own_status" != 99 ]; then
			base_died=$((base_died + 1))
			return 0
		fi
		tail -n 20 own.err
		echo "status $own_status, of the base $status: $1"
		return 1
	fi
	if died "$status"; then
		mended=$((mended + 1))
		[ "$own_status" != 0 ] || { echo "no error: $1"; return 1; }
		return 0
	fi
	# The base takes what is left of the last page for events, or reads on, or in
	# front of a record.
	if grep -qE "was cut short|larger than their record|Can't parse sample, err = -14" own.err
	then
		mended=$((mended + 1))
		[ "$own_status" != 0 ] || { echo "no error: $1"; return 1; }
		return 0
	fi
	if [ "$status" != "$own_status" ] || ! cmp base.out own.out || ! cmp base.err own.err; then
		diff base.err own.err | head -n 5
		echo "differs (status $status and $own_status): $1"
		return 1
	fi
	checked=$((checked + 1))
}

# is_refused FORM TYPE: a record without room for its sample_id. The base of 6.12 reads in front
# of it, which a sanitizer shows. That of 7.3 skips records that are smaller than their type.
is_refused()
{
	local base_status

	"$PERF" bench internals ordered-events -o broken -f "$1" -c 6 -r 10 -n 20 -p 3 >/dev/null
	break_file short broken "$2"
	print "$BASE_PERF" base
	base_status=$status
	print "$PERF" own
	if grep -q "($2) event size 8 too small (min [0-9]*), skipping" base.err; then
		[ "$base_status$status" = 00 ] && cmp base.out own.out && cmp base.err own.err
	else
		[ "$status" != 0 ] && ! died "$status" &&
			grep -qE "[Cc]an't parse (SWITCH \(14\) )?sample, err = -14" own.err
	fi || {
		tail -n 20 own.err
		echo "status $status: $1, type $2, a record without room for its sample_id"
		exit 1
	}
	rm -rf broken
}

# PERF_RECORD_EXIT, and PERF_RECORD_SWITCH, which is no more than a header
for form in file pipe; do
	is_refused "$form" 4
	is_refused "$form" 14
done

for form in file pipe dir; do
	rm -rf recording
	"$PERF" bench internals ordered-events -o recording -f "$form" -c 6 -r 10 -n 20 \
		-e 2 -p 3 -s 50 -T 4 -t 300 -d 50 -L 5 >/dev/null
	for ((seed = FIRST; seed < FIRST + COUNT; seed++)); do
		rm -rf broken
		cp -r recording broken
		victim=broken
		[ "$form" != dir ] || victim=broken/data.$((seed % 6))
		break_file "$seed" "$victim"
		check "$form, seed $seed"
	done
done

if [ $((checked + mended + complaints)) -lt $((2 * COUNT)) ]; then
	echo "only $checked recordings could be compared"
	exit 1
fi
echo "$checked broken recordings read alike, $mended are refused that the base reads beyond" \
	"their end, $base_died end both by a signal, $complaints are a sanitizer's, of base's code"
