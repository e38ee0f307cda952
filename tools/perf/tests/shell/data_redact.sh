#!/bin/bash
# perf data redact: what a copy tells, and that both of its files are written or none
# SPDX-License-Identifier: GPL-2.0
#
# Recordings are made by lib/recording.py, which shares no code with perf. What is secret in
# them has "hush" in it, in numbers, too, so that a search finds it. Copies are read by
# BASE_PERF, if set, as well.
set -euo pipefail

READER=${BASE_PERF:-perf}
RECORDING=$(realpath "$(dirname "$0")/lib/recording.py")

if ! command -v python3 >/dev/null; then
	echo "skip: no python3"
	exit 2
fi

dir=$(mktemp -d /tmp/perf-data-redact.XXXXXX)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

fail()
{
	echo "$*" >&2
	[ ! -s log ] || cat log >&2
	exit 1
}

recording()
{
	python3 "$RECORDING" "$@"
}

redact()
{
	perf data redact "$@" >log 2>&1 </dev/null
}

copies()
{
	redact "$@" || fail "failed: $*"
}

# only FILE...: there are these files, and log
only()
{
	local files
	files=$(find . -mindepth 1 ! -name log -printf '%f\n' | sort | xargs)
	[ "$files" = "$(printf '%s\n' "$@" | sort | xargs)" ] || fail "files: $files"
}

# refuses PATTERN ARGUMENT...: one sentence that says what to do; no file appears or changes
refuses()
{
	local before
	before=$(contents)
	! redact "${@:2}" || fail "succeeded: ${*:2}"
	[ "$(wc -l <log)" = 1 ] || fail "not one line: ${*:2}"
	grep -q -e "$1" log || fail "'${*:2}' does not say '$1'"
	[ "$(contents)" = "$before" ] || fail "it changed files: ${*:2}"
}

contents()
{
	find . -mindepth 1 ! -name log -printf '%p %y %i %s\n' | sort
	find . -type f ! -name log -exec cksum {} + | sort
}

field()
{
	python3 -c 'import json, sys; print(json.load(open(sys.argv[2])).get(sys.argv[1]))' "$@"
}

# told FILE...: the secrets that these tell, with what is around them
told()
{
	grep -aohiE '[][ -~]*hush[][ -~]*' "$@" | sort -u || true
}

# tells EXPECTED FILE...: exactly these lines
tells()
{
	[ "$(told "${@:2}")" = "$1" ] || fail "it tells: $(told "${@:2}")"
}

# types FILE: type and misc of its records
types()
{
	recording records "$1" | awk '{ print $1, $2 }'
}

# comms FILE: names that COMM records have, in their order
comms()
{
	recording records "$1" | awk '$1 == 3 { print $4 }'
}

test_secrets()
{
	local expected

	recording make a
	[ "$(told a a.json | wc -l)" -gt 100 ] || fail "the recording has no secrets"
	copies -i a -o b
	only a a.json b b.json
	tells '' b b.json
	# What is left out on purpose is named, and what is not known is counted.
	for expected in ' 1 AUXTRACE,' ' 1 NAMESPACES,' ' 1 BPF_EVENT,' ' 1 TEXT_POKE,' \
			' 2 BUILD_ID,' '^6 records are of types that this perf does not know' \
			'^2 records are damaged' '^2 records are of no event' \
			'^1 samples have registers, stacks'; do
		grep -q -e "$expected" log || fail "it does not say $expected"
	done
	recording records b | awk '{ print $1 }' | sort -nu | xargs >text
	[ "$(cat text)" = '1 2 3 4 5 6 7 8 9 10 13 14 15 17 19 68 69 79 82' ] ||
		fail "types of records: $(cat text)"
	# The build-id of the kernel, and of what is called so
	[ "$(grep -aoc 'kernkernkernkernkern' b)" = 1 ] || fail "the kernel has no build-id"
	[ "$(field kernel b.json) $(field perf_version b.json)" = '6.12.5 6.12' ] ||
		fail "versions: $(cat b.json)"
	[ "$(field boot_id b.json) $(field reason b.json)" = 'None None' ] ||
		fail "what is not for others: $(cat b.json)"
	[ "$(field bytes b.json)" = "$(stat -c %s b)" ] || fail "its size: $(cat b.json)"
	[ "$(field file b.json) $(field trigger_time b.json)" = 'b 1.5' ] ||
		fail "the manifest: $(cat b.json)"
}

# Names of one kind are equal where they were equal, and tell nothing else.
test_tokens()
{
	local host

	comms a >names
	comms b >tokens
	[ "$(sed 's/.*hush.*/x/' names | sort | uniq -c | sort | xargs)" = \
	  '1 kworker/0:2 1 swapper/0 6 x' ] || fail "names: $(cat names)"
	# hush-comm is there twice, a kworker is one whatever it works for.
	[ "$(sort -u tokens | wc -l)" = 7 ] || fail "tokens: $(cat tokens)"
	[ "$(sed -n 1p tokens)" = "$(sed -n 3p tokens)" ] || fail "tokens: $(cat tokens)"
	[ "$(sed -n '5p;7p;8p' tokens | xargs)" = 'kworker/0:1 swapper/0 kworker/0:2' ] ||
		fail "tokens: $(cat tokens)"
	[ "$(grep -cxE 't-[a-z2-7]{12}' tokens)" = 5 ] || fail "tokens: $(cat tokens)"
	[ "$(field trigger_comm b.json)" = "$(sed -n 1p tokens)" ] ||
		fail "another token in the manifest"
	host=$(field host b.json)
	[[ $host == h-* && $(grep -aoc -e "$host" b) = 1 ]] || fail "the machine's token: $host"
	# The name of a file has the same length whatever it is, unless it is none.
	[ "$(recording sizes b 6)" = '88 112' ] || fail "sizes: $(recording sizes b 6)"
	# Another copy has other tokens.
	copies -q -i a -o c
	! comms c | grep -qxFf <(grep '^t-' tokens) ||
		fail "the key is the same again"
	[ "$(types c)" = "$(types b)" ] || fail "types of another copy"
	rm c c.json names tokens text
}

# script READER FILE FIELDS
script()
{
	"$1" script -G -i "$2" -F "$3" 2>log || fail "perf script $3"
}

# What is no text can be read as before.
test_reading()
{
	local reader

	recording make-readable r
	copies -q -i r -o s
	for reader in "$READER" perf; do
		script "$reader" r tid,cpu,time,period,ip >before
		script "$reader" s tid,cpu,time,period,ip >after
		[ "$(wc -l <before)" -gt 20 ] || fail "it has no samples"
		sed -i 's/(.*)//; s/ *$//' before after
		cmp before after || fail "$reader reads something else: $(diff before after)"
		script "$reader" s event,trace >text
		[ "$(grep -E 'prev_comm=t-[a-z2-7]{12}.* prev_pid=1[02] .*prev_state=[SR] ' text |
			grep -cE ' next_comm=t-[a-z2-7]{12}.* next_pid=1[02] ')" = 9 ] ||
			fail "switches: $(cat text)"
		grep -qE 'sched_process_exec: +filename=/redacted/f-[a-z2-7]{12} pid=10' text ||
			fail "files: $(cat text)"
		grep -qE 'raw_syscalls:sys_enter: .*\<id=1\>|sys_enter: +NR 1 ' text ||
			fail "system calls: $(cat text)"
		"$reader" report -i s --stdio >text 2>/dev/null || fail "$reader report"
		grep -q '/redacted/f-\|f-[a-z2-7]\{12\}' text || fail "report: $(cat text)"
		# It looks up the states of tasks.
		for file in r s; do
			"$reader" sched latency -i $file >text 2>log || fail "$reader sched latency"
			sed -nE 's/^ *[^ |]+:([0-9(]+\)? .*)/\1/p; /TOTAL/p' text |
				sort >latency-$file
		done
		[ "$(grep -c '^1[02] .* 4 |' latency-r)" = 2 ] || fail "latencies: $(cat text)"
		cmp latency-[rs] || fail "latencies: $(diff latency-[rs])"
	done
	rm r s before after text latency-[rs]
}

# forks FILE: the names of both tasks
forks()
{
	script perf "$1" event,trace |
		sed -nE 's/.*fork: +parent_comm=(.*) parent_pid=(.*) child_comm=(.*) child_pid=(.*)/\1|\3/p'
}

# The name of a task is one, in a field of a fixed size or of any.
test_comms()
{
	local first second

	recording make-comms d
	copies -q -i d -o e
	tells "" e
	forks e >text
	first=$(comms e)
	second=$(script perf e event,trace | sed -nE 's/.* next_comm=(t-\S+) .*/\1/p')
	[ "$(sed -n '1,2p' text | xargs)" = "$first|$second swapper/0|" ] ||
		fail "names: $(cat text)"
	sed -n 3p text | grep -qxE 't-[a-z2-7]{12}\|t-[a-z2-7]{12}' || fail "long: $(cat text)"
	[ "$(sed -n '4,5p;7p;10p' text | xargs)" = '| | | |' ] || fail "outside: $(cat text)"
	sed -n 11p text | grep -qE '\|$' || fail "a sample that ends: $(cat text)"
	[ "$(wc -l <text)" = 11 ] || fail "samples: $(cat text)"
	copies -qf --keep comm -i d -o e
	forks e >text
	[ "$(sed -n '1,2p' text | xargs)" = 'hush-a|hush-b swapper/0|' ] ||
		fail "names that are kept: $(cat text)"
	tells "$(printf '%s\n' hush hush-a hush-b)" e
	rm d e text
}

# What users define has no field that is known, whatever it is called.
test_probes()
{
	local reader=perf

	script $reader b event,trace >text
	[ "$(grep -cE 'tp_[a-z2-7]{12}: *$' text)" = 5 ] || fail "what is not known: $(cat text)"
	! grep -qE 'sched_waking|sched_stat_wait|openat' text || fail "probes: $(cat text)"
	# Known names of what is no number and no name
	grep -qE 'sched_wakeup: *$' text || fail "arrays of bytes: $(cat text)"
	rm text
}

# The kernel takes words of a program's memory for return addresses. What is no code is not told.
test_chains()
{
	perf script -i b -F ip >chains 2>log
	awk 'NF { print $1 }' chains | sed -n 1,9p | xargs >text
	[ "$(cat text)" = "ffffffff81000010 401000 0 402000 0 601000 0 0 0" ] ||
		fail "call chain: $(cat text)"
	rm text chains
}

# The half of a chain that has a record of its own is treated alike, and is still found.
test_deferred()
{
	recording make-deferred d
	copies -i d -o e
	grep -q '^1 records are damaged' log || fail "the damaged record"
	[ "$(recording words e 9 | cut -d' ' -f7-)" = \
	  '4 ffffffffffffff80 ffffffff81000010 fffffffffffffd80 100000001' ] ||
		fail "the half of the kernel: $(recording words e 9)"
	[ "$(recording words e 22 | cut -d' ' -f1-6)" = '100000001 4 401000 0 402000 0' ] ||
		fail "the half of the program: $(recording words e 22)"
	[ "$(recording deferral e)" = c000000000 ] ||
		fail "the attributes: $(recording deferral e)"
	rm d e
}

test_keep()
{
	copies -q --keep comm -i a -o k
	tells "$(printf '%s\n' 'hush-0' 'hush-1' 'hush-a' 'hush-comm' 'hush-prev' 'hush-rename' \
		'  "trigger_comm": "hush-comm",' | sort -u)" k k.json
	copies -qf --keep files -i a -o k
	tells "$(printf '%s\n' '/lib/modules/6.12-hush/hush.ko' '/usr/bin/hush-build-id' \
		'[hushmodule]' | sort -u)" k k.json
	copies -qf --keep build-ids -i a -o k
	tells "$(printf 'hush%.0s' {1..5})" k k.json
	copies -qf --keep cgroups -i a -o k
	tells '  "trigger_cgroup": "/hush.slice",' k k.json
	copies -qf --keep host -i a -o k
	tells "$(printf '%s\n' 'hushhost.hushdomain' '  "host": "hushhost.hushdomain",' |
		sort -u)" k k.json
	copies -qf --keep kernel -i a -o k
	tells "$(printf '%s\n' '6.12.5-hush' '6.12.hush' '  "kernel": "6.12.5-hush",' \
		'  "perf_version": "6.12.hush",' | sort -u)" k k.json
	# The name of a task that is that of the machine stays only with both.
	copies -qf --keep comm,host -i a -o k
	told k | grep -qx hushhost || fail "not kept: $(told k)"
	refuses "'nothing' is unknown: use comm" --keep comm,nothing -i a -o c
	rm k k.json
}

# A file beside the recording that is no manifest
test_no_manifest()
{
	cp a d
	for text in '{ "host": "hush", "schema": 1 }' '[]' '"hush' '' \
			'{ "schema": "", "file": "", "trigger": "", "window": 1, "cpus": [] }'; do
		printf '%s' "$text" >d.json
		copies -i d -o e
		[ ! -e e.json ] || fail "it takes for a manifest: $text"
		grep -q 'd.json is not the manifest of a dump, and is left out' log ||
			fail "it does not say that it leaves it out: $text"
		rm e
	done
	rm d.json
	mkfifo d.json
	timeout 20 perf data redact -i d -o e >log 2>&1 || fail "it waits for a FIFO"
	[ ! -e e.json ] || fail "it reads a FIFO"
	rm d.json e
	mkdir d.json
	copies -i d -o e
	rm -r d.json d e
}

# What has the names is not replaced unless that is asked for, and the input never is.
test_names()
{
	local output

	cp b e
	echo precious >f.json
	refuses 'e exists: write to another file, or use --force' -i a -o e
	refuses 'f.json exists: write to another file, or use --force' -i a -o f
	ln a hard
	ln -s a soft
	ln -s a.json soft-manifest
	for output in a hard soft a.json soft-manifest ./a; do
		refuses 'are the same file: write to another one\|not a regular file' -f -i a \
			-o $output
	done
	# Its manifest would be the input, or that of the input
	cp a g.json
	refuses 'are the same file' -f -i g.json -o g
	ln a.json h.json
	refuses 'are the same file' -f -i a -o h
	mkdir i
	refuses 'not a regular file' -f -i a -o i
	refuses 'cannot be written: No such file' -i a -o none/b
	refuses 'Name the file that the copy goes to' -i a
	rm -r hard soft soft-manifest g.json h.json i

	# The manifest of another recording does not stay beside a copy that has none.
	recording make-old o
	copies -q -f -i o -o f
	[ ! -e f.json ] || fail "a manifest of another recording is left"
	copies -q -f -i a -o e
	[ -e e.json ] || fail "no manifest"
	only a a.json b b.json e e.json f o
	rm e e.json f o
}

# A library that lets the nth call fail, or sends a signal at it
build_shim()
{
	cat >shim.c <<-'END'
		#define _GNU_SOURCE
		#include <dlfcn.h>
		#include <errno.h>
		#include <signal.h>
		#include <stdio.h>
		#include <stdlib.h>
		#include <unistd.h>

		static int is_due(const char *what)
		{
			static int names, reads;
			int *calls = *what == 'N' ? &names : &reads;
			char *at = getenv(what);

			return at && ++*calls == atoi(at);
		}

		static void send_signal(void)
		{
			kill(getpid(), atoi(getenv("SIGNAL")));
		}

		static int fails(void)
		{
			if (!is_due("NAME_AT"))
				return 0;
			if (getenv("SIGNAL")) {
				send_signal();
				return 0;
			}
			errno = EIO;
			return 1;
		}

		int rename(const char *from, const char *to)
		{
			int (*real)(const char *, const char *) = dlsym(RTLD_NEXT, "rename");

			return fails() ? -1 : real(from, to);
		}

		int renameat2(int dir, const char *from, int to_dir, const char *to,
			      unsigned int flags)
		{
			int (*real)(int, const char *, int, const char *, unsigned int) =
				dlsym(RTLD_NEXT, "renameat2");

			if (getenv("NO_FLAGS") && flags) {
				errno = EINVAL;
				return -1;
			}
			return fails() ? -1 : real(dir, from, to_dir, to, flags);
		}

		int fsync(int fd)
		{
			int (*real)(int) = dlsym(RTLD_NEXT, "fsync");

			return fails() ? -1 : real(fd);
		}

		static void count_read(void)
		{
			if (is_due("READ_AT"))
				send_signal();
		}

		ssize_t pread64(int fd, void *to, size_t size, off_t offset)
		{
			ssize_t (*real)(int, void *, size_t, off_t) =
				dlsym(RTLD_NEXT, "pread64");

			count_read();
			return real(fd, to, size, offset);
		}

		ssize_t pread(int fd, void *to, size_t size, off_t offset)
		{
			ssize_t (*real)(int, void *, size_t, off_t) = dlsym(RTLD_NEXT, "pread");

			count_read();
			return real(fd, to, size, offset);
		}
	END
	gcc -shared -fPIC -o shim.so shim.c -ldl
	rm shim.c
}

# shimmed VARIABLE... -- ARGUMENT...: perf with the library
shimmed()
{
	local variables=()

	while [ "$1" != -- ]; do
		variables+=("$1")
		shift
	done
	env LD_PRELOAD="$dir/shim.so" "${variables[@]}" perf data redact -q "${@:2}" >log 2>&1
}

# Whatever step fails: both files are there, or all is as it was.
test_failures()
{
	local at before failed=0 old

	for old in none file both; do
		for at in {1..7}; do
			rm -f x x.json
			[ $old = none ] || echo precious >x
			[ $old != both ] || echo manifest >x.json
			before=$(contents)
			if shimmed NAME_AT="$at" -- -f -i a -o x; then
				[[ -e x.json && $(stat -c %s x) = "$(stat -c %s b)" ]] ||
					fail "succeeded without a copy: $old, $at"
				continue
			fi
			failed=$((failed + 1))
			grep -q 'cannot be written: Input/output error' log ||
				fail "it does not say what failed: $old, $at"
			[ "$(contents)" = "$before" ] ||
				fail "$old, $at: $(contents | diff - <(echo "$before"))"
		done
	done
	# 2 files to flush, 2 names to give, and what has them to put aside
	[ $failed = 15 ] || fail "only $failed steps failed"
	# File systems whose renames replace
	rm -f x x.json
	shimmed NO_FLAGS=1 -- -i a -o x || fail "without renameat2"
	[ "$(types x)" = "$(types b)" ] || fail "without renameat2: $(types x)"
	only a a.json b b.json shim.so x x.json
	rm x x.json
}

# signalled SIGNAL VARIABLE... -- ARGUMENT...: it ends by the signal
signalled()
{
	local number status=0
	number=$(kill -l "$1")
	{ shimmed SIGNAL="$number" "${@:2}" || status=$?; } 2>/dev/null
	[ $status = $((128 + number)) ] || fail "SIG$1, ${*:2}: status $status"
}

test_signals()
{
	local signal at

	recording make-large large 1000
	for at in 7 9; do
		# There is something to remove: what cannot be caught leaves it.
		signalled KILL READ_AT=$at -- -i large -o x
		rm .x.*.tmp || fail "nothing is written at read $at"
		for signal in HUP INT QUIT TERM XCPU; do
			signalled $signal READ_AT=$at -- -i large -o x
			only a a.json b b.json large shim.so
		done
	done
	# While files get their names it waits.
	for at in 3 4; do
		signalled TERM NAME_AT=$at -- -i a -o x
		only a a.json b b.json large shim.so x x.json
		[ "$(types x)" = "$(types b)" ] || fail "not complete"
		rm x x.json
	done
	# What is ignored stays so.
	(trap '' HUP; shimmed SIGNAL=1 READ_AT=7 -- -i large -o x) || fail "SIGHUP is not ignored"
	rm x large
}

test_compressed()
{
	local kind

	for kind in packed packed2; do
		recording make-$kind p
		if perf version --build-options | grep -q 'zstd: .*on'; then
			copies -q -i p -o q
			tells '' q
			[ "$(types q | sort)" = "$(types b | sort)" ] ||
				fail "$kind: $(diff <(types q) <(types b))"
			rm q
		else
			refuses 'built without zstd: use one' -i p -o q
		fi
	done
	for kind in compressed compressed2; do
		recording make-$kind p
		refuses 'built without zstd: use one\|cannot be decompressed' -i p -o q
	done
	rm p
}

# Records whose id is elsewhere, and that have counts in them
test_old_events()
{
	recording make-old o
	copies -i o -o q
	grep -q 'wrote 21 records, 20 of them samples' log || fail "records are missing"
	[ "$(wc -l <log)" = 1 ] || fail "it complains"
	tells '' q
	script "$READER" o tid,cpu,time,period,event >before
	script "$READER" q tid,cpu,time,period,event >after
	cmp before after || fail "$(diff before after)"
	rm o q before after
}

test_refusals()
{
	recording make-newer n
	refuses 'does not know their types. Use a newer one' -i n -o q
	refuses 'none cannot be read: No such file' -i none -o q
	refuses 'is no recording: name a file that perf record has written' -i a.json -o q
	refuses 'not a regular file' -i /dev/null -o q
	refuses 'takes no arguments' -o q a
	head -c 5000 a >n
	refuses 'is damaged: it is cut short' -i n -o q
	head -c 103 a >n
	refuses 'is no recording' -i n -o q
	printf '2ELIFREP' | cat - <(tail -c +9 a) >n
	refuses 'another byte order' -i n -o q
	printf 'PERFILE2\20\0\0\0\0\0\0\0' | cat - <(tail -c +17 a) >n
	refuses 'is a stream (perf record -o -): record to a file' -i n -o q
	cp a n
	printf '\0\0\0\0\0\0\0\0' | dd of=n bs=1 seek=48 conv=notrunc status=none
	refuses 'has no end: perf record was killed' -i n -o q
	rm n
}

# cheap FILE KIB: it is copied to q in 20 seconds, with that much memory
cheap()
{
	python3 - "$@" <<-'END' || fail "$1: too slow, or too large"
		import resource, subprocess, sys
		resource.setrlimit(resource.RLIMIT_CPU, (20, 20))
		run = subprocess.run(['perf', 'data', 'redact', '-i', sys.argv[1], '-o', 'q'],
		                     stdin=subprocess.DEVNULL, capture_output=True)
		used = resource.getrusage(resource.RUSAGE_CHILDREN)
		print(run.stderr.decode(), '%.2f s, %d KiB' % (used.ru_utime, used.ru_maxrss))
		sys.exit(run.returncode or used.ru_maxrss > int(sys.argv[2]))
	END
}

# The time grows with the recording, and the memory does not.
test_large()
{
	recording make-large large 20000
	cheap large 65536
	tells '' q
	rm large q
}

# Nor can a recording make its own ids expensive.
test_collisions()
{
	recording make-collisions c
	cheap c 131072
	rm c q
}

test_companions()
{
	mkdir a.symbols
	copies -i a -o q
	grep -q 'a.symbols names files of this machine, or has copies of them: do not give' log ||
		fail "it does not warn of what lies beside the recording"
	rm -r a.symbols q q.json
}

test_help()
{
	perf data --list-cmds >log || true
	grep -qw redact log || fail "perf data does not complete redact"
	perf data redact --list-opts >log || true
	perf data redact -h >help 2>&1 || true
	for option in input output keep force quiet; do
		grep -qw -e "--$option" log || fail "--$option is not completed"
		grep -q -e "--$option" help || fail "--$option is not in the help"
	done
	rm help
}

test_secrets
test_tokens
test_reading
test_comms
test_probes
test_chains
test_deferred
test_keep
test_no_manifest
test_names
if command -v gcc >/dev/null; then
	build_shim
	test_failures
	test_signals
	rm shim.so
else
	echo "no gcc: failures and signals are not tested"
fi
test_compressed
test_old_events
test_refusals
test_large
test_collisions
test_companions
test_help
only a a.json b b.json
