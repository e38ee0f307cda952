# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# What perf verdict says of a recording from which an event is left out. Sourced by verdict.sh.

# The numbers that events have on the machine that records
note_ids()
{
	grep -Hs . /sys/kernel/tracing/events/{block,irq,sched,vmscan}/*/id >"$TMP/ids" || true
}

# without WHAT: $TMP/data without an event, or without call chains (-g), as $TMP/less. Records of
# the event stay, but as those of an event that tells nothing.
without()
{
	local id=

	[ "$1" = -g ] || id=$(sed -n "s|.*/${1/://}/id:||p" "$TMP/ids")
	[ "$1" = -g ] || [ -n "$id" ]
	python3 - "$TMP/data" "$TMP/less" "$id" <<-'END'
		import struct, sys
		PERF_TYPE_SOFTWARE, PERF_TYPE_TRACEPOINT, DUMMY = 1, 2, 9
		PERF_RECORD_SAMPLE, CALLCHAIN, PERF_CONTEXT_USER = 9, 1 << 5, 2 ** 64 - 512
		# IP, TID, TIME, ADDR, ID, STREAM_ID, CPU, PERIOD, IDENTIFIER: 8 bytes each
		BEFORE = (1, 2, 4, 8, 1 << 6, 1 << 9, 1 << 7, 1 << 8, 1 << 16)
		with open(sys.argv[1], 'rb') as f:
		    file = bytearray(f.read())
		size, attrs, attrs_size, data, data_size = struct.unpack_from('<5Q', file, 16)
		changed = 0
		if sys.argv[3]:
		    for at in range(attrs, attrs + attrs_size, size):
		        kind, _, config = struct.unpack_from('<IIQ', file, at)
		        if (kind, config) == (PERF_TYPE_TRACEPOINT, int(sys.argv[3])):
		            struct.pack_into('<I', file, at, PERF_TYPE_SOFTWARE)
		            struct.pack_into('<Q', file, at + 8, DUMMY)
		            changed += 1
		else:
		    fields, = struct.unpack_from('<Q', file, attrs + 24)
		    chain = 8 + 8 * sum(bool(fields & bit) for bit in BEFORE)
		    at = data
		    while at < data + data_size and fields & CALLCHAIN:
		        record, _, length = struct.unpack_from('<IHH', file, at)
		        if record == PERF_RECORD_SAMPLE:
		            nr, = struct.unpack_from('<Q', file, at + chain)
		            struct.pack_into('<%dQ' % nr, file, at + chain + 8,
		                             *[PERF_CONTEXT_USER] * nr)
		            changed += nr
		        at += length
		if not changed:
		    sys.exit('%s is not in the recording' % (sys.argv[3] or 'a call chain'))
		with open(sys.argv[2], 'wb') as f:
		    f.write(file)
	END
}

# takes WHAT...: if one of these is left out of $TMP/data, perf verdict says so, and blames nobody
# but the culprit, or a task that is held up itself
takes()
{
	local what

	for what in "$@"; do
		without "$what"
		perf verdict -i "$TMP/less" --json >"$TMP/json.less"
		cp "$TMP/json.less" "$(mktemp "$TMP/kept.XXXXXX")"
		python3 - "$TMP/truth" "$TMP/json.less" "$what" <<-'END'
			import fnmatch, json, sys
			told = json.load(open(sys.argv[2]))
			what, events = sys.argv[3], [e for m in told['missing']
			                             for e in m['events'].split(',')]
			if not any(fnmatch.fnmatchcase(what, event) for event in events):
			    sys.exit('%s is not told to be missing: %r' % (what, events))
			named = {name for line in open(sys.argv[1]) for name in line.split()[1:]}
			for finding in told['findings'][:1]:
			    blamed = [t['comm'] for t in finding['culprits'][:1]]
			    if not named.issuperset(blamed):
			        sys.exit('without %s: %s' % (what, finding['sentence']))
			print('without %s: %s' % (what, told['findings'][0]['sentence']
			                          if told['findings'] else 'nothing'))
		END
	done
}
