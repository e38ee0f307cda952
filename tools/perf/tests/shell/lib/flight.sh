# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# What the tests of the flight recorder share. Sourced, not run; wants
# lib/persistent.sh for check() and its like.

# A perf that knows nothing of the flight recorder, to open what it writes.
BASE_PERF=${BASE_PERF:-perf}
FLIGHT_LIB=$(dirname "${BASH_SOURCE[0]}")
RECORDER=

# Checks run in subshells: what one of them left behind is listed.
# shellcheck disable=SC2317 # called by the traps
kill_recorders()
{
	xargs -r kill -KILL <"$TMP/recorders" 2>/dev/null || true
}

# shellcheck disable=SC2317 # called by the trap
flight_cleanup()
{
	local dir

	trap - EXIT
	kill_recorders
	if mountpoint -q "$TMP/full"; then
		umount "$TMP/full"
	fi
	# Nothing else is ever removed, whatever the list has.
	if [ -e "$TMP/made-cgroups" ]; then
		while read -r dir; do
			[[ $dir == /sys/fs/cgroup/[!/.]* && $dir != */..* ]] || continue
			find "$dir" -xdev -depth -type d -exec rmdir {} \; 2>/dev/null || true
		done <"$TMP/made-cgroups"
	fi
	rm -rf "$TMP"
}

flight_begin()
{
	if [ "$(id -u)" != 0 ]; then
		echo "1..0 # SKIP recording all CPUs takes root"
		exit 2
	fi
	TMP=$(mktemp -d "${TMPDIR:-/tmp}/flight.XXXXXX")
	: >"$TMP/recorders"
	export HOME=$TMP
	trap flight_cleanup EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
}

# flight_begin_sessions: for recorders of sessions, in the place of persistent_begin
flight_begin_sessions()
{
	persistent_begin
	: >"$TMP/recorders"
	trap 'kill_recorders; persistent_cleanup' EXIT
}

# wait_for COMMAND...: at most FLIGHT_WAIT seconds, or five minutes; some tests set the clock
# meanwhile. What takes longer is looked at less often: under emulation a look takes as long as a
# pause.
wait_for()
{
	local i began now _

	read -r began _ </proc/uptime
	for ((i = 0; ; i++)); do
		! "$@" >/dev/null 2>&1 || return 0
		read -r now _ </proc/uptime
		((${now%.*} - ${began%.*} < ${FLIGHT_WAIT:-300})) || break
		if [ "$i" -lt 5 ]; then
			pause 0.1
		else
			pause 0.3
		fi
	done
	echo "waited in vain for: $*"
	return 1
}

is_ready()
{
	grep -q 'flight recorder [0-9]' "$OUT_NAME.stderr"
}

# Ready, or refused
has_begun()
{
	is_ready || is_gone "$RECORDER"
}

# start_recorder OUT OPTION...: in the background, ready for triggers
start_recorder()
{
	OUT_NAME=$1
	shift
	# Not to be taken for ready by what the one before has said.
	: >"$OUT_NAME.stderr"
	perf record -o "$OUT_NAME" "$@" >>"$OUT_NAME.stderr" 2>&1 &
	RECORDER=$!
	echo $RECORDER >>"$TMP/recorders"
	wait_for has_begun
	is_ready || { cat "$OUT_NAME.stderr"; return 1; }
}

# The dumps of OUT, oldest first; a manifest comes behind its dump.
dumps()
{
	local file

	for file in "$1".sample.*.json; do
		[ "$file" = "$1.sample.*.json" ] || echo "${file%.json}"
	done
}

newest_dump()
{
	local files=("$1".sample.*.json)

	[ "${files[-1]}" = "$1.sample.*.json" ] || echo "${files[-1]%.json}"
}

# has_dumps OUT N
has_dumps()
{
	local files=("$1".sample.*.json)

	[ "${files[0]}" != "$1.sample.*.json" ] || files=()
	[ ${#files[@]} -ge "$2" ]
}

# dump: ask for one, and wait for it; sets DUMP
# shellcheck disable=SC2034 # for the scripts that source this
dump()
{
	local before

	before=$(dumps "$OUT_NAME" | wc -l)
	kill -USR1 "$RECORDER"
	wait_for has_dumps "$OUT_NAME" $((before + 1))
	DUMP=$(newest_dump "$OUT_NAME")
}

# stop_recorder SIGNAL: sets STATUS, and DUMP to the last one
# shellcheck disable=SC2034 # for the scripts that source this
stop_recorder()
{
	kill -"$1" "$RECORDER"
	STATUS=0
	wait "$RECORDER" || STATUS=$?
	RECORDER=
	DUMP=$(newest_dump "$OUT_NAME")
}

# reads_more_than N FUNCTION: which sets DUMP to one with more records. A recorder that a busy
# machine does not run reads too little, and says so: then it is tried again.
reads_more_than()
{
	for _ in 1 2 3; do
		"$2"
		[ "$(json "$DUMP" events)" -le "$1" ] || break
		[ "$(json "$DUMP" given_up)" != 0 ] || break
	done
	[ "$(json "$DUMP" events)" -gt "$1" ]
}

# A recorder asks for cgroups if they are mounted when it starts.
mount_cgroups()
{
	mkdir -p /sys/fs/cgroup
	mountpoint -q /sys/fs/cgroup || mount -t cgroup2 none /sys/fs/cgroup
}

# make_cgroup PATH: below the mount point, until the test ends; sets CGROUP
# shellcheck disable=SC2034 # for the scripts that source this
make_cgroup()
{
	mount_cgroups
	CGROUP=/sys/fs/cgroup/$1
	echo "/sys/fs/cgroup/${1%%/*}" >>"$TMP/made-cgroups"
	mkdir -p "$CGROUP"
}

# inside COMMAND...: a function or a program, in the cgroup CGROUP
inside()
{
	(
		echo "$BASHPID" >"$CGROUP/cgroup.procs"
		"$@"
	)
}

# json FILE KEY: a number or a string of a manifest
json()
{
	local line

	while IFS= read -r line; do
		[[ ! $line =~ ^\ \ \"$2\":\ \"?([^\"]*)\"?,$ ]] || echo "${BASH_REMATCH[1]}"
	done <"$1.json"
}

# opens DUMP: stock perf reads all of it, and does not complain but for lost events
# and for a /proc that took too long to read, which are the machine's
opens()
{
	local said

	said=$(other_perf script -i "$1" -F comm,pid,time 2>&1 >"$TMP/opened") || {
		echo "$said"
		return 1
	}
	said=$(sed -E '/^Warning:$/d; /^Processed [0-9]+ events and lost /d; /^Check IO/d; /^$/d;
		/map information files? for pre-existing/,/--proc-map-timeout/d' \
		<<<"$said")
	if [ -n "$said" ]; then
		echo "$said"
		return 1
	fi
	[ -s "$TMP/opened" ]
}

# Runs a hot loop in a process of its own, whose name and symbol nobody else has.
run_dead()
{
	perf test -w noploop 1
}

dead_have_names()
{
	other_perf report -i "$1" --stdio -g none --no-children --sort comm,dso,sym \
		>"$TMP/report" 2>&1
	sed -n '/^#/d; 1,40p' "$TMP/report"
	grep -qE '^ *[0-9.]+% +perf(-noploop)? +perf +\[\.\] noploop' "$TMP/report"
}

# records_in_delay OUT OPTION...: what comes in the delay of a trigger is in the dump
records_in_delay()
{
	local hit

	start_recorder "$@" --trigger signal,delay=4s
	hit=$(python3 -c 'import time; print(time.monotonic())')
	kill -USR1 "$RECORDER"
	wait_for has_dumps "$OUT_NAME" 1
	stop_recorder INT
	DUMP=$(dumps "$OUT_NAME" | sed -n 1p)
	echo "hit at $hit, newest $(json "$DUMP" newest)"
	awk "BEGIN { exit !($(json "$DUMP" newest) > $hit + 3.9) }"
	perf script -i "$DUMP" -F time | tr -d ' :' |
		awk -v hit="$hit" '$1 > hit { n++ } END { print n + 0, "behind it"; exit n < 100 }'
}

# close_range FIRST LAST [FILE]: see there
close_range()
{
	python3 "$FLIGHT_LIB/close_files.py" "$@"
}

# closed_numbers DUMP: those of its sys_enter_close, one a line, in order of time
closed_numbers()
{
	perf script -i "$1" -F trace 2>/dev/null |
		sed -nE 's/.*fd: (0x[0-9a-f]+).*/\1/p' | xargs -r printf '%d\n'
}

# has_numbers DUMP FIRST LAST: all of them, in order, once
has_numbers()
{
	if ! closed_numbers "$1" | awk -v n="$2" -v last="$3" '
		$1 != n { print $1, "instead of", n; exit bad = 1 }
		{ n++ }
		END { print "up to", n - 1; exit bad || n <= last }'
	then
		perf script -i "$1" -F cpu,comm,time,trace 2>&1 |
			grep -m 60 'fd: 0x' || true
		return 1
	fi
}

# close_files N: as many of them
close_files()
{
	close_range 1000000 $((999999 + $1))
}

# fails_somehow PATTERN COMMAND...: it ends with some error, and says why
fails_somehow()
{
	local pattern=$1 text

	shift
	if text=$("$@" 2>&1); then
		echo "it should fail: $*"
		return 1
	fi
	printf '%s\n' "$text"
	grep -qE -e "$pattern" <<<"$text" || { echo "no '$pattern' in that: $*"; return 1; }
}

# run_bpf SECONDS [PAUSE]: loads a BPF program of one's own, bpf_prog_TAG_flight_prog, and
# runs it for so long, again and again, and often enough to be sampled on a machine that
# has other work, too; with pauses of so many seconds
run_bpf()
{
	python3 - "$1" "${2:-0}" <<-'END'
		import ctypes, os, struct, sys, time
		BPF_PROG_LOAD, BPF_PROG_TEST_RUN, SOCKET_FILTER = 5, 10, 1
		libc = ctypes.CDLL(None, use_errno=True)
		def bpf(cmd, attr):
		    buf = ctypes.create_string_buffer(attr, 144)
		    fd = libc.syscall(321, cmd, buf, len(buf))
		    if fd < 0:
		        sys.exit('bpf: ' + os.strerror(ctypes.get_errno()))
		    return fd
		def insn(code, imm):
		    return struct.pack('<BBhi', code, 0, 0, imm)
		# r0 = 0; r0 += 1, a thousand times; exit
		code = insn(0xb7, 0) + insn(0x07, 1) * 1000 + insn(0x95, 0)
		insns, gpl = ctypes.create_string_buffer(code), ctypes.create_string_buffer(b'GPL')
		data, out = ctypes.create_string_buffer(64), ctypes.create_string_buffer(256)
		at = ctypes.addressof
		prog = bpf(BPF_PROG_LOAD, struct.pack('<IIQQIIQII16s', SOCKET_FILTER,
		           len(code) // 8, at(insns), at(gpl), 0, 0, 0, 0, 0, b'flight_prog'))
		end, n = time.monotonic() + float(sys.argv[1]), 0
		while time.monotonic() < end or n < 100:
		    n += 1
		    bpf(BPF_PROG_TEST_RUN,
		        struct.pack('<IIIIQQII', prog, 0, 64, 256, at(data), at(out), 1000, 0))
		    time.sleep(float(sys.argv[2]))
	END
}

# names_bpf OPTION...: a program that came and went while the recorder ran has its name
names_bpf()
{
	start_recorder "$TMP/bpf" "$@"
	run_bpf 2
	dump
	stop_recorder INT
	DUMP=$(dumps "$TMP/bpf" | sed -n 1p)
	perf script -i "$DUMP" -F comm,ip,sym >"$TMP/script" 2>/dev/null
	grep -cE 'python3 +[0-9a-f]+ bpf_prog_[0-9a-f]{16}_flight_prog' "$TMP/script"
}

# The check of that; the caller's bpf_programs says which options.
check_bpf_programs()
{
	local name="names of BPF programs"

	if [ "$(cat /proc/sys/net/core/bpf_jit_enable 2>/dev/null)" = 1 ]; then
		check "$name" bpf_programs
	else
		leave_out "$name" "not compiled, they have no code to be sampled"
	fi
}

is_gone()
{
	! kill -0 "$1" 2>/dev/null
}

# serves_as_daemon OUT OPTION...: as a daemon, asked by an event, on the socket, and by SIGUSR2
serves_as_daemon()
{
	OUT_NAME=$1
	shift
	perf record --daemon -o "$OUT_NAME" "$@" --trigger signal --trigger socket \
		--trigger 'event:sched:sched_process_exec/filename ~ "*flight-go*"/' \
		>"$OUT_NAME.terminal" 2>&1 || { cat "$OUT_NAME.terminal"; return 1; }
	RECORDER=$(cat "$OUT_NAME.pid")
	echo "$RECORDER" >>"$TMP/recorders"
	run_dead
	ln -sf /bin/true "$TMP/flight-go"
	"$TMP/flight-go"
	wait_for has_dumps "$OUT_NAME" 1
	DUMP=$(newest_dump "$OUT_NAME")
	[ "$(json "$DUMP" trigger)" = event ]
	opens "$DUMP"
	dead_have_names "$DUMP"
	echo 'dump for the test' | socat -t 300 - "UNIX-CONNECT:$OUT_NAME.sock"
	DUMP=$(newest_dump "$OUT_NAME")
	[ "$(json "$DUMP" trigger)" = socket ]
	has_dumps "$OUT_NAME" 2
	kill -USR2 "$RECORDER"
	wait_for is_gone "$RECORDER"
	cat "$OUT_NAME.log"
	RECORDER=
	[ -z "$(dumps "$OUT_NAME")" ]
	opens "$OUT_NAME"
	dead_have_names "$OUT_NAME"
}
