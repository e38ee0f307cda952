#!/bin/bash
# perf data recover: options, messages, and what other versions of perf read; the list of perf ctl
# SPDX-License-Identifier: GPL-2.0
#
# Images are made by lib/make_blackbox.py, which shares no code with perf. What is recovered
# is read by BASE_PERF, if set, else by perf.
set -euo pipefail

READER=${BASE_PERF:-perf}
MAKE=$(realpath "$(dirname "$0")/lib/make_blackbox.py")
EXAMPLES=$(realpath "$(dirname "$0")/../../examples/flight")

if ! command -v python3 >/dev/null; then
	echo "skip: no python3"
	exit 2
fi

dir=$(mktemp -d /tmp/perf-data-recover.XXXXXX)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

fail()
{
	echo "$*"
	[ ! -s log ] || cat log
	exit 1
}

# says PATTERN COMMAND...: it succeeds, and prints this
says()
{
	"${@:2}" >log 2>&1 || fail "failed: ${*:2}"
	grep -q -e "$1" log || fail "'${*:2}' does not say '$1'"
}

# refuses PATTERN ARGUMENT...: one sentence that says what to do, and no file
refuses()
{
	local rc=0

	perf data recover "${@:2}" >log 2>&1 || rc=$?
	[ $rc != 0 ] || fail "succeeded: ${*:2}"
	# By SIGABRT, SIGBUS or SIGSEGV; others of its statuses are above 128, too.
	case $rc in 134 | 135 | 139) fail "crashed: ${*:2}" ;; esac
	[ "$(wc -l <log)" = 1 ] || fail "not one line: ${*:2}"
	grep -q -e "$1" log || fail "'${*:2}' does not say '$1'"
	[ ! -e perf.data.recovered ] || fail "a file was written: ${*:2}"
}

# field NAME FILE: of a manifest
field()
{
	python3 -c 'import json, sys; print(json.load(open(sys.argv[2]))[sys.argv[1]])' "$@"
}

# cpus CPU OLDEST NEWEST SAMPLES...: what the manifest says of each CPU
cpus()
{
	python3 - >told <<-'EOF'
		import json
		for cpu in json.load(open("out.json"))["cpus"]:
		    print(*(cpu[name] for name in ("cpu", "oldest", "newest", "events")))
	EOF
	[ "$(xargs <told)" = "$*" ] || fail "the CPUs in the manifest: $(cat told)"
	rm told
}

only()
{
	[ "$(echo *)" = "$*" ] || fail "files: $(ls -A)"
	[ -z "$(find . -name '.*.tmp')" ] || fail "a temporary file is left: $(ls -A)"
}

test_recording()
{
	"$MAKE" --reason 'Fatal exception' >image
	says 'image at 0x0: dead, region made, generation 1, kernel 6.12.0-made,' \
		perf data recover --list image
	grep -q ', CPU 1, alive\[2002\]: Fatal exception$' log || fail "the death is not listed"
	grep -qx '  session flight: 2 events, 2 buffers of 32 KiB, 1 KiB of notes' log ||
		fail "the session is not listed"
	says 'wrote 400 samples of session flight to out: 0.199 s, death: Fatal exception' \
		perf data recover -o out image
	only image log out{,.json}
	[ "$(field reason out.json)" = 'Fatal exception' ] || fail "the reason in the manifest"
	[ "$(field events out.json)" = 400 ] || fail "the samples in the manifest"
	[ "$(field trigger_time out.json)" = 6.0 ] || fail "the time in the manifest"
	cpus 0 5.0 5.199 200 1 5.000000001 5.199000001 200

	"$READER" script -i out -F comm,tid,cpu,time,ip >text 2>/dev/null || fail "$READER script"
	[ "$(wc -l <text)" = 400 ] || fail "samples: $(wc -l <text)"
	[ "$(grep -cE '^ *(noted +2001|alive +2002) ' text)" = 400 ] ||
		fail "names: $(awk '{ print $1, $2 }' text | sort | uniq -c)"
	awk '{ print $4 }' text | sort -c -V || fail "not in the order of time"

	# The kernel ran at another address than the one whose symbols are at hand.
	printf '%s\n' 'ffffffff81000000 T _text' 'ffffffff81000000 T function_0' \
		'ffffffff81000010 T function_1' 'ffffffff81000020 T function_2' \
		'ffffffff81000030 T function_3' 'ffffffff81000040 T function_4' >kallsyms
	"$READER" report -i out --stdio --kallsyms kallsyms -F sample,symbol 2>/dev/null |
		grep -E '^ +100 +\[k\] function_[123]' >text || true
	[ "$(wc -l <text)" = 3 ] || fail "symbols: $(cat text)"
	rm -f out* text kallsyms
}

# tells NOTE...: these notes are in all that the incident report writes
tells()
{
	local note
	perf script report incident -i out -o out.html >text 2>log || fail "the incident report"
	perf script report incident -i out --json >figures 2>log || fail "the figures"
	for note; do
		grep -qxF "Note: $note" text || fail "the summary does not say '$note': $(cat text)"
		grep -qF "\"$note\"" out.html || fail "the page does not say '$note'"
		python3 - "$note" <<-'EOF' || fail "the figures do not say '$note'"
			import json, sys
			sys.exit(sys.argv[1] not in json.load(open("figures"))["notes"])
		EOF
	done
}

# The reader of the report learns what is missing.
test_incident()
{
	local names='Not all tasks that were alive at the death are in the image'
	local damaged='Damaged in the image, and left out:'
	local dropped='16 bytes of the ring buffers were dropped'

	# It is another topic's.
	if [ ! -e "$(perf --exec-path)/scripts/python/incident.py" ]; then
		echo "no incident report: that it tells of damage is not tested"
		return
	fi

	"$MAKE" --sessions one,two --size 524288 --samples 400 --tasks-left-out \
		--flip sessions:1 --flip notes:0 --flip buffers:1 >image
	perf data recover -q -o out image >log 2>&1 || fail "a damaged image"
	# The buffer of CPU 0 has room for 341 records and a third.
	cpus 0 5.059 5.399 341
	tells "$dropped: newer records had overwritten their end." \
		"$damaged sessions or the death (1), ring buffers (1), parts of the notes (1)." \
		"$names: some names may be missing."
	! grep -q 'while they were read' text out.html || fail "nobody read the ring buffers"

	# Neither a page nor a terminal obeys a manifest.
	sed -i 's/"partial"/"<b>\\u001b[2J"/' out.json
	tells "$names: some names may be missing."
	grep -q "^Note: $dropped: <b>\\\\x1b\\[2J\.\$" text || fail "the reason: $(cat text)"
	! grep -q '<b>' out.html || fail "the reason is HTML"

	"$MAKE" --flip tasks:0 >image
	perf data recover -q -f -o out image >log 2>&1 || fail "a damaged table"
	tells "$damaged the table of tasks (1)."
	"$MAKE" >image
	perf data recover -q -f -o out image >log 2>&1 || fail "a whole image"
	tells
	! grep -i '^Note: .*\(dropped\|damaged\|image\)' text || fail "nothing is missing"
	rm -f out* text figures
}

# Of an unknown kernel: the records can be read all the same.
test_tracepoint()
{
	"$MAKE" --tracepoint >image
	says 'The data of 1 tracepoints cannot be shown: .*this is not the kernel that died' \
		perf data recover -o out image
	"$READER" script -i out -F event >text 2>/dev/null || fail "$READER script"
	[ "$(sort text | uniq -c | awk '{ print $1, $2 }')" = '400 made:event:' ] ||
		fail "events: $(sort text | uniq -c)"
	! "$READER" script -v -i out 2>&1 | grep -i -m1 'fail\|error' ||
		fail "the format is not accepted"
	rm out* text
}

test_several()
{
	"$MAKE" --sessions one,two,three --size 524288 >image
	says 'of session two to out.two' perf data recover -o out image
	only image log out.one out.one.json out.three out.three.json out.two out.two.json
	rm out.*
	says 'of session two to out:' perf data recover -o out --session two image
	only image log out{,.json}
	rm out{,.json}

	# Both halves of a region, and a dump of memory with a copy
	"$MAKE" >image
	"$MAKE" --generation 2 --phys $((0x7c040000)) >>image
	says 'of session flight to out.made.2.flight' perf data recover -o out image
	[ -e out.made.1.flight ] || fail "the first death is missing"
	rm out.*
	head -c 65536 /dev/zero >memory
	"$MAKE" --generation 9 >>memory
	"$MAKE" --phys $((65536 + 262144)) >>memory
	says 'memory at 0x50000: dead, region made, generation 1' perf data recover --list memory
	[ "$(grep -c ' at 0x' log)" = 1 ] || fail "a copy was taken"
	rm memory
}

# flatten FILE: as makedumpfile -F does, with the second half first
flatten()
{
	python3 - "$1" <<-'EOF'
		import struct, sys
		data = open(sys.argv[1], "rb").read()
		half = len(data) // 2
		out = sys.stdout.buffer
		out.write(struct.pack(">16sqq", b"makedumpfile", 1, 1).ljust(4096, b"\0"))
		for offset in half, 0:
		    out.write(struct.pack(">qq", offset, half) + data[offset:offset + half])
		out.write(struct.pack(">qq", -1, -1))
	EOF
}

# What makedumpfile makes of memory
test_dumps()
{
	head -c 65536 /dev/zero >memory
	"$MAKE" --phys 65536 --region 65536 >>memory
	flatten memory >flat
	perf data recover -q -o out memory >log 2>&1 || fail "memory"
	TMPDIR=. perf data recover -q -o flat.out flat >log 2>&1 || fail "a flattened dump"
	cmp out flat.out >log 2>&1 || fail "a flattened dump has other records"
	only flat "flat.out"{,.json} image log memory out{,.json}
	head -c 100000 flat >short
	refuses 'short is a flattened dump that is damaged, or ends too early' short
	TMPDIR=/nowhere refuses 'in order in TMPDIR: No such file.*makedumpfile -R' flat
	{ printf 'KDUMP   '; head -c 65536 /dev/zero; } >kdump
	if perf version --build-options | grep -q 'libkdumpfile: \[ *on'; then
		refuses 'compressed dump cannot be read: .*saved in another way' kdump
	else
		refuses "kdump is a compressed dump.*libkdumpfile-dev.*makedumpfile -E" kdump
	fi
	rm flat* memory out* short kdump
}

# missing PATTERN PART...: without these parts it says this, and writes a recording nevertheless
missing()
{
	"$MAKE" --scatter --sessions one,two --size 524288 "${@:2}" >memory
	says "$1" perf data recover -f -o out memory
}

# The sessions of the kernel's memory: whatever leads to a part that is missing, it is told.
test_scattered()
{
	local session='the list of sessions is broken: one or more are missing'
	local events='the list of its events is broken: some are missing, with their records'
	local notes='some of its notes are missing, and with them names'
	local none='no session in it can be read'

	"$MAKE" --sessions one,two --size 524288 >image
	perf data recover -q -o out image >log 2>&1 || fail "one piece"
	"$READER" script -i out.one -F comm,tid,cpu,time,ip >whole 2>/dev/null
	"$MAKE" --scatter --sessions one,two --size 524288 >memory
	says 'of session two to out.two' perf data recover -f -o out memory
	! grep -q 'missing\|damaged' log || fail "nothing is missing"
	"$READER" script -i out.one -F comm,tid,cpu,time,ip >text 2>/dev/null
	[ -s whole ] || fail "$READER script"
	cmp whole text >log || fail "scattered, there are other records"
	rm out*

	missing "Session one: $notes" --lose notes:0
	[ "$(field notes_damaged out.one.json)" = 1 ] || fail "the notes in the manifest"
	[ "$(field notes_damaged out.two.json)" = 0 ] || fail "they are of the other session"
	missing "Session one: $events" --lose events:0
	[ "$(field events_damaged out.one.json)" = 1 ] || fail "the events in the manifest"
	[ "$(field events_damaged out.two.json)" = 0 ] || fail "they are of the other session"
	[ "$(field events out.one.json)" = 200 ] || fail "the other event"
	rm out*
	# The newest part leads to the other one.
	missing "Session one: $events" --lose events:1
	grep -q 'Session one was left out: its events are damaged' log || fail "no events"
	[ ! -e out.one ] || fail "a recording without events"
	rm out*
	missing "memory: $session" --lose session:0
	field image out.json >text
	grep -q "'damaged': 1," text || fail "the session in the manifest: $(cat text)"
	says ', 1 damaged entries$' perf data recover --list memory
	rm out*
	# So does the newest session.
	"$MAKE" --scatter --sessions one,two --size 524288 --lose session:1 >memory
	! perf data recover -o out memory >log 2>&1 || fail "no session"
	grep -q "memory: $session" log || fail "it does not say that sessions are missing"
	grep -q "$none" log || fail "it does not say that no session is left"
	! perf data recover -o out --session one memory >log 2>&1 || fail "no session one"
	grep -q "memory: $session" log || fail "it does not say why session one is missing"
	only image log memory text whole
	rm memory text whole
}

test_files()
{
	"$MAKE" >image
	perf data recover -q -o perf.data.kept image >log 2>&1
	[ ! -s log ] || fail "not quiet"
	echo precious >perf.data.kept
	refuses 'perf.data.kept exists: .*-f' -o perf.data.kept image
	[ "$(cat perf.data.kept)" = precious ] || fail "a file was overwritten"
	says 'to perf.data.kept:' perf data recover -f -o perf.data.kept image
	refuses 'cannot be written: No such file' -o none/out image
	rm perf.data.kept*
	perf data recover -q image
	only image log perf.data.recovered perf.data.recovered.json
	rm perf.data.*
}

test_states()
{
	"$MAKE" --state clean >image
	says 'No machine died: .*--all' perf data recover image
	only image log
	says 'wrote 400 samples' perf data recover --all -o out image
	"$MAKE" --state reset >image
	says 'death: reset without a message' perf data recover -f -o out image
	[ "$(field trigger_time out.json)" = 5.199000001 ] || fail "the time of a reset"
	# Without a table of tasks
	[ "$(field unresolved out.json)" = 200 ] || fail "samples without a name"
	rm out*

	head -c 1000000 /dev/urandom >image
	says 'There is no black box image in image' perf data recover image
	says 'There is no black box image in image' perf data recover --list image
	: >image
	says 'There is no black box image in image' perf data recover image
	only image log
}

test_refusals()
{
	refuses 'There is no nothing: name a file' nothing
	refuses 'is no file: copy' /dev/null
	"$MAKE" --version 2 >image
	refuses 'an image of another version: use the perf of the kernel' image
	"$MAKE" --swap >image
	refuses 'the other byte order: use perf on such a machine' image
	"$MAKE" --damage >image
	refuses 'superblock is damaged: ' image
	head -c 65536 /dev/zero >memory
	"$MAKE" >>memory
	refuses 'none at its own address: cut the file' memory
	rm memory
	"$MAKE" >image
	refuses 'There is no session other in image: use --list' --session other image
	refuses 'Use either --last or the name of a file' --last made image
	refuses 'not for a file: leave it out' --release image
	refuses 'one after the other' --release --list
	refuses 'leave out --session' --release --session flight
	refuses 'one file at a time' image log
}

# leave IMAGE...: the last boot left these
leave()
{
	local dir=sys/bus/event_source/devices/persistent image n=0
	rm -rf sys
	mkdir -p "$dir/last"
	echo 6 >"$dir/type"
	for image; do
		cp "$image" "$dir/last/box.$n"
		: >"$dir/last/box.$n.release"
		n=$((n + 1))
	done
}

# last OUTPUT IMAGE...: what perf data recover --release does if the last boot left these.
# beside: what it is run by
beside=()
last()
{
	local dir=sys/bus/event_source/devices/persistent/last image
	leave "${@:2}"
	rm -f out*
	rc=0
	SYSFS_PATH=$PWD/sys "${beside[@]}" perf data recover --release -o "$1" >log 2>&1 || rc=$?
	released=$(cd "$dir" && for image in *.release; do [ ! -s "$image" ] || echo "$image"; done)
}

# kept PATTERN: nothing was released, and it says that, and what to do
kept()
{
	local why='box.* is not released, as not all of it was recovered: copy .*/box.* to a disk'

	why+=', then write 1 to .*/box.*.release'
	[ -z "$released" ] || fail "released: $released"
	grep -q "$why" log || fail "it does not say why it is kept"
	grep -q -e "$1" log || fail "it does not say '$1'"
	! grep -q 'No machine died' log || fail "a machine did die"
}

# Only what was recovered as a whole is released.
test_release()
{
	"$MAKE" --sessions one,two --size 524288 >good
	last out good
	[[ $rc = 0 && $released = box.0.release ]] || fail "not released: $rc"
	[ "$(cat sys/bus/event_source/devices/persistent/last/box.0.release)" = 1 ] ||
		fail "another value than 1"
	[[ -e out.one && -e out.two ]] || fail "not recovered"

	"$MAKE" --flip sessions:0 >bad
	last out bad
	[ "$rc" != 0 ] || fail "no session can be read"
	kept 'no session in it can be read'
	"$MAKE" --state reset --sessions one,two --size 524288 --flip sessions:1 >bad
	last out bad
	[[ $rc = 0 && -e out ]] || fail "the other session is not recovered"
	kept '1 damaged entries of sessions, or of the death, are left out'
	"$MAKE" --flip events:0 --flip events:1 >bad
	last out bad
	[ "$rc" != 0 ] || fail "no events can be read"
	kept 'its events are damaged'
	"$MAKE" --flip buffers:1 >bad
	last out bad
	[[ $rc = 0 && -e out ]] || fail "the other buffer is not recovered"
	kept 'damaged entries were dropped'

	# Another image does not suffer.
	"$MAKE" --version 2 --generation 2 >other
	last out good other
	[[ $rc = 0 && $released = box.0.release ]] || fail "not released beside another version"
	grep -q 'box.1 is left out' log || fail "another version is left out silently"
	grep -q 'box.1 is not released' log || fail "it does not say that it is kept"
	"$MAKE" --state clean >tidy
	last out tidy other
	[ "$rc" != 0 ] || fail "a version that cannot be read"
	kept 'of another version'
	last out tidy
	[[ $rc = 0 && -z $released ]] || fail "a clean image needs no release"
	grep -q 'No machine died' log || fail "a machine died"
	test_release_unwritten
	rm -rf sys out* good bad other tidy
}

# A file system returns EBADMSG for a bad checksum, and perf data recover for an image that
# cannot be read. Only the second may go on to release images.
test_release_unwritten()
{
	if ! command -v strace >/dev/null; then
		echo "no strace: writes that fail with EBADMSG are not tested"
		return
	fi
	beside=(strace -qq -o trace -e inject=fsync:error=EBADMSG)
	last out good
	beside=()
	grep -q 'EBADMSG.*INJECTED' trace || fail "nothing failed"
	[[ $rc != 0 && -z $released ]] || fail "released, but not written: $rc"
	grep -q 'out.one cannot be written: Bad message' log || fail "it does not say what failed"
	[ ! -e out.one ] || fail "a file that was not written"
	rm trace
}

# lists LINE...: what perf ctl says of the last boot; $PREFIX runs it
lists()
{
	local prefix
	read -ra prefix <<<"${PREFIX-}"
	SYSFS_PATH=$PWD/sys "${prefix[@]}" perf ctl -l >all 2>log || fail "perf ctl -l"
	# There may be recorders.
	sed -n '/^LAST BOOT/,$p' all | tr -s ' ' >log
	diff <(printf '%s\n' "$@") log || fail "the last boot is listed otherwise"
	rm all
}

readonly HEAD='LAST BOOT SIZE DEATH STATE KERNEL TIME REASON'

# An orderly end is no death, and what cannot be read is not taken for one.
test_ctl_list()
{
	local died='6.12.0-made 20231114T221326.000Z Fatal exception'
	local hint='Recover what was recorded'

	"$MAKE" --reason 'Fatal exception' >died
	leave died
	lists "$HEAD" "box.0 262144 yes dead $died" "$hint: perf data recover -o FILE"
	"$MAKE" --state clean >tidy
	"$MAKE" --state released >freed
	leave tidy freed
	lists "$HEAD" 'box.0 262144 no clean 6.12.0-made - -' \
		'box.1 262144 no released 6.12.0-made - -' \
		"$hint: perf data recover --all -o FILE"
	leave
	SYSFS_PATH=$PWD/sys perf ctl -l >log
	! grep -q 'LAST BOOT\|recover' log || fail "there is nothing to list"

	"$MAKE" --state reset >silent
	"$MAKE" --flip death:0 >bad
	"$MAKE" --version 2 --state clean >version
	"$MAKE" --damage >damaged
	"$MAKE" --swap >foreign
	head -c 1000 died >short
	# Nothing but the first page is read.
	{ head -c 4096 died; head -c 258048 /dev/urandom; } >first
	leave silent bad version damaged foreign short first
	lists "$HEAD" 'box.0 262144 yes reset 6.12.0-made - reset without a message' \
		'box.1 262144 yes dead 6.12.0-made - damaged' \
		'box.2 262144 no version - - -' 'box.3 262144 - damaged - - -' \
		'box.4 262144 - foreign - - -' 'box.5 1000 yes unknown 6.12.0-made - -' \
		"box.6 262144 yes dead $died" "$hint: perf data recover -o FILE"
	SYSFS_PATH=$PWD/sys perf ctl --json >all 2>log
	python3 - >log <<-'EOF'
		import json
		for i in json.load(open("all")):
		    if i["kind"] == "image" and i["name"] in ("box.0", "box.2", "box.3", "box.6"):
		        print(*(str(i[k]).replace("None", "-") for k in (
		            "name", "size", "death", "state", "kernel", "time", "reason")))
	EOF
	printf '%s\n' 'box.0 262144 True reset 6.12.0-made - reset without a message' \
		'box.2 262144 False version - - -' \
		'box.3 262144 - damaged - - -' \
		'box.6 262144 True dead 6.12.0-made 1700000006000000000 Fatal exception' |
		diff - log || fail "JSON"

	# Others see that there is something.
	leave died
	chmod 400 sys/bus/event_source/devices/persistent/last/box.0
	chmod 755 .
	local PREFIX='setpriv --reuid=65534 --regid=65534 --clear-groups'
	if [ "$(id -u)" = 0 ] && $PREFIX perf --version >/dev/null 2>&1; then
		lists "$HEAD" 'box.0 262144 - - - - -' "$hint, as root: perf data recover -o FILE"
	fi
	rm -rf sys all died tidy freed silent bad version damaged foreign short first
}

# boots CODE IMAGE...: the unit starts after a boot that finds these
boots()
{
	local rc=0
	[ $# = 1 ] || leave "${@:2}"
	SYSFS_PATH=$PWD/sys "$EXAMPLES/recover-blackbox.sh" perf "$PWD/var" >log 2>&1 || rc=$?
	[ $rc = "$1" ] || fail "status $rc"
	released=$(cd sys/bus/event_source/devices/persistent/last &&
		for image in *.release; do [ ! -s "$image" ] || echo "$image"; done)
}

# Each death gets a directory of its own, once, and is released only if it was recovered whole.
test_unit()
{
	local one two
	one=box.$(printf first | od -An -tx1 | tr -d ' ')0000000000000000000000
	two=box.$(printf second | od -An -tx1 | tr -d ' ')00000000000000000000
	"$MAKE" --sessions one,two --size 524288 --boot first >good
	"$MAKE" --flip buffers:1 --boot second >bad
	"$MAKE" --state clean --boot third >tidy
	"$MAKE" --version 2 --boot fourth >version
	leave
	boots 0
	[ ! -e var ] || fail "there was nothing to recover"
	boots 0 good bad tidy
	[ "$released" = box.0.release ] || fail "released: $released"
	grep -q 'box.1 is not released' log || fail "it does not say what is kept"
	[ "$(cd var && find . -type f | sort | xargs)" = "$(printf './%s ' "$one/done" \
		"$one/perf.data."{one,one.json,two,two.json} \
		"$two/"{done,perf.data,perf.data.json} | sed 's/ $//')" ] || fail "$(find var)"
	"$READER" script -i "var/$two/perf.data" >text 2>/dev/null || fail "$READER script"
	[ -s text ] || fail "no samples"
	[ -z "$(find var -perm /077)" ] || fail "others may read it"

	# The next boots: what was recovered stays, and one that cannot be read does not stop the
	# rest.
	find var -type f -exec ls -i --full-time {} + >before
	rm -f sys/bus/event_source/devices/persistent/last/box.0*
	boots 0
	grep -q "box.1 was recovered to .*$two before" log || fail "it is recovered again"
	[ -z "$released" ] || fail "released: $released"
	boots 1 version bad
	grep -q 'box.0 has an image of another version' log || fail "it does not name the version"
	find var -type f -exec ls -i --full-time {} + | diff before - || fail "it is written again"
	# It was interrupted.
	rm "var/$one/done" "var/$one/perf.data.two"*
	boots 0 good
	[[ -e var/$one/done && -e var/$one/perf.data.two && $released = box.0.release ]] ||
		fail "it is not completed"
	rm -rf sys var good bad tidy version text before
}

verifies()
{
	local unit
	mkdir units
	for unit; do
		sed "s|/usr/libexec/perf-core|$EXAMPLES|; s|/usr/bin/perf|$(command -v perf)|" \
			"$EXAMPLES/${unit/@*./@.}" >"units/$unit"
		systemd-analyze verify --man=no "units/$unit" >log 2>&1 || fail "$unit"
		[ ! -s log ] || fail "$unit"
	done
	rm -r units
}

# Two images of one name: neither overwrites the recording of the other.
test_same_name()
{
	head -c 4096 /dev/zero >memory
	"$MAKE" --phys 4096 --region 4096 >>memory
	"$MAKE" --phys $((4096 + 262144)) --region 4096 >>memory
	perf data recover -q -o out memory >log 2>&1 || fail "two images of one name"
	[[ -e out.made.1.0x1000.flight && -e out.made.1.0x41000.flight ]] ||
		fail "names: $(ls)"
	rm memory out*
}

test_help()
{
	perf data --list-cmds >log || true
	grep -qw 'recover note' log || fail "perf data does not complete recover and note"
	! perf data note >log 2>&1 || fail "notes without a session"
	grep -q 'takes the name of a session' log || fail "a session is not asked for"
	perf data recover --list-opts >log || true
	perf data recover -h >help 2>&1 || true
	for option in output list session last release all force; do
		grep -qw -e "--$option" log || fail "--$option is not completed"
		grep -q -e "--$option" help || fail "--$option is not in the help"
	done
}

test_recording
test_incident
test_tracepoint
test_several
test_dumps
test_scattered
test_files
test_states
test_refusals
test_release
test_ctl_list
test_unit
test_same_name
test_help
if command -v systemd-analyze >/dev/null; then
	verifies perf-flight-recover.service perf-flight-note@box.service
else
	echo "no systemd-analyze: the units are not verified"
fi
