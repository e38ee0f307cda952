#!/bin/bash
# perf record -M --archive: the files that the symbols of dumps are in (exclusive)
# SPDX-License-Identifier: GPL-2.0
set -euo pipefail
# shellcheck source=lib/persistent.sh
. "$(dirname "$0")/lib/persistent.sh"
# shellcheck source=lib/flight.sh
. "$(dirname "$0")/lib/flight.sh"
# shellcheck source=lib/on_disk.sh
. "$(dirname "$0")/lib/on_disk.sh"

# What is recorded is at random addresses where the kernel has them, whatever this script was
# started with: on an emulated machine, all else is quicker without (setarch -R).
AT_RANDOM=(setarch "$(uname -m)")

# The files of the store beside OUT, below it
stored()
{
	(cd "$(dirname "$1")/perf-symbols" && find . -type f | sed 's/..//' | sort)
}

# What the lists name is in the store.
has_all()
{
	local dir line

	dir=$(dirname "$1")
	cat "$dir"/*.symbols | sort -u >"$TMP/needed"
	while read -r line; do
		[ -s "$dir/perf-symbols/$line" ]
		[ -f "$dir/perf-symbols/$line" ] || ls "$dir/perf-symbols/$line"/* >"$TMP/there"
	done <"$TMP/needed"
}

# Each build-id of a store once, each of a list in the store, and nothing else
is_whole()
{
	local dir

	dir=$(dirname "$1")
	has_all "$1"
	(cd "$dir/perf-symbols" && find .build-id -type l) | sort >"$TMP/links"
	grep '^\.build-id' "$TMP/needed" | cmp - "$TMP/links"
	stored "$1" | sed -nE 's,^.*/([0-9a-f]{2})([0-9a-f]{38})/[^/]*$,.build-id/\1/\2,p' |
		sort -u | cmp - "$TMP/links"
	stored "$1" | sed -nE 's,^.*/([0-9a-f]{40})/(elf|kallsyms|vdso)$,\1,p' | sort |
		uniq -d | not grep .
	find "$dir/perf-symbols" -name '.*.*' ! -name .build-id | not grep .
	find "$dir" -maxdepth 1 -name '.*.tmp' | not grep .
}

archives()
{
	local dir="$TMP/arch ive" store="$TMP/arch ive/perf-symbols" first

	mkdir "$dir" "$TMP/empty" "$TMP/elsewhere"
	make_victim "$dir/victim"
	perf record -o "$dir/i" -M 8M -e cpu-clock -F 499 -g --archive \
		--on-dump "ls '$dir'/i.*.symbols >>'$TMP/packed'; :" -- \
		"${AT_RANDOM[@]}" "$dir/victim"
	DUMP=$(dumps "$dir/i")
	# Behind the archive comes the command.
	wait_for grep -qxF "$DUMP.symbols" "$TMP/packed"
	[ "$(stat -c %a "$DUMP.symbols" "$store" | xargs)" = '600 700' ]
	# The user's own cache is left alone.
	[ ! -e "$TMP/.debug/.build-id" ]
	is_whole "$DUMP"

	cp "$(type -P true)" "$dir/new"
	mv "$dir/new" "$dir/victim"
	not has_names "$DUMP" "$TMP/elsewhere"
	has_names "$DUMP" "$store"
	stored "$DUMP" >"$TMP/list"
	cat "$TMP/list"
	grep -qE '/victim/[0-9a-f]{40}/elf$' "$TMP/list"
	# Of this one there are callers only, as a rule.
	grep -qE '/libc.so.6/[0-9a-f]{40}/elf$' "$TMP/list"
	grep -qE 'kernel.kallsyms./[0-9a-f]{40}/kallsyms$' "$TMP/list"

	# As the man page says. That script takes no spaces.
	tar -C "$store" -chjf "$TMP/symbols.tar.bz2" -T "$DUMP.symbols"
	mkdir "$TMP/empty/.debug"
	not has_names "$DUMP" "$TMP/empty/.debug"
	HOME=$TMP/empty perf archive --unpack "$TMP/symbols.tar.bz2"
	has_names "$DUMP" "$TMP/empty/.debug"

	# Of a second dump there is only what is new.
	first=$DUMP
	perf record -o "$dir/i" -M 4M -e cpu-clock -F 499 -g --archive \
		--on-dump "echo >'$TMP/second'; :" -- perf test -w noploop 1
	wait_for test -s "$TMP/second"
	is_whole "$DUMP"
	stored "$DUMP" | comm -13 "$TMP/list" - | not grep -E 'libc.so|kallsyms'
	stored "$DUMP" | comm -13 "$TMP/list" - | grep '/perf/'
	# What no dump needs goes with the last one that does.
	perf record -o "$dir/i" -M 4M -e cpu-clock -F 499 --max-files 2 true
	not test -e "$first.symbols"
	stored "$DUMP" | not grep victim
	stored "$DUMP" | grep libc.so.6
	is_whole "$DUMP"
	perf record -o "$dir/i" -M 4M -e cpu-clock -F 499 --max-files 1 true
	stored "$DUMP" | not grep .
}

# The file that is made of all dumps needs what they needed, though it is gone by now.
archives_combined()
{
	local dir=$TMP/combined

	mkdir "$dir"
	make_victim "$dir/victim"
	# A signal that comes before the recorder is ready is ignored.
	# shellcheck disable=SC2016 # for the shell that runs it
	perf record -o "$dir/i" -M 4M -e cpu-clock -F 499 --archive \
		--trigger signal,action=combine,delay=1s -- "${AT_RANDOM[@]}" \
		sh -c '"$0"; while kill -USR1 $PPID; do "$0"; done' "$dir/victim" ||
		echo "status $?"
	stored "$dir/i" | grep -E '/victim/[0-9a-f]{40}/elf$'
	is_whole "$dir/i"
	has_names "$dir/i" "$dir/perf-symbols"
	rm "$dir/i"*
	perf record -o "$dir/i" -M 4M -e cpu-clock -F 499 --archive \
		--on-dump "echo >'$TMP/third'; :" "${AT_RANDOM[@]}" "$dir/victim"
	wait_for test -s "$TMP/third"
	rm "$dir/victim"
	perf record --combine -o "$dir/i"
	stored "$dir/i" | grep -E '/victim/[0-9a-f]{40}/elf$'
	perf record --archive -o "$dir/i"
	is_whole "$dir/i"
	has_names "$dir/i" "$dir/perf-symbols"
}

# Two recorders in one directory; neither removes what the other needs.
archives_of_two()
{
	local dir=$TMP/two i

	mkdir "$dir"
	make_victim "$dir/victim"
	start_recorder "$dir/a" -M 4M -a -e cpu-clock -F 499 -g --archive --max-files 1
	perf record -o "$dir/b" -M 4M -e cpu-clock -F 499 --archive -- \
		"${AT_RANDOM[@]}" "$dir/victim"
	wait_for test -e "$(dumps "$dir/b").symbols"
	DUMP=$(dumps "$dir/b")
	for i in 1 2; do
		dump_next_of "$dir/a"
	done
	stop_recorder INT
	wait_for test -e "$DUMP.symbols"
	perf record --archive -o "$DUMP"
	is_whole "$DUMP"
	has_names "$(dumps "$dir/b")" "$dir/perf-symbols"
	# Of two that write at once, one waits.
	rm -r "$dir/perf-symbols"
	perf record --archive -o "$(dumps "$dir/b")" &
	perf record --archive -o "$DUMP"
	wait $!
	is_whole "$DUMP"
	has_names "$(dumps "$dir/b")" "$dir/perf-symbols"
}

dump_next_of()
{
	if [ -z "$(dumps "$1")" ]; then
		dump
	else
		dump_next
	fi
}

# Wherever it is killed, the next one is whole, and a list has all that it names.
archives_survive()
{
	local dir=$TMP/killed i pid

	mkdir "$dir"
	make_victim "$dir/victim"
	perf record -o "$dir/i" -M 4M -e cpu-clock -F 499 -g -- "${AT_RANDOM[@]}" "$dir/victim"
	DUMP=$(dumps "$dir/i")
	for i in 0.1 0.3 0.5 0.7 0.9 1.2; do
		perf record --archive -o "$DUMP" &
		pid=$!
		sleep "$i"
		kill -KILL "$pid" 2>/dev/null || true
		wait "$pid" || true
		[ ! -e "$DUMP.symbols" ] || has_all "$DUMP"
		rm -f "$DUMP.symbols"
		[ "$i" != 0.7 ] || rm -rf "$dir/perf-symbols"
	done
	# What such a one has left: a copy, a file without a link, a file that is cut off
	perf record --archive -o "$DUMP"
	victim=$dir/perf-symbols/$(stored "$DUMP" | grep '/victim/.*/elf')
	cp "$victim" "${victim%/*}/.elf.abcdef"
	mkdir -p "$dir/perf-symbols/usr/bin/gone/${victim:(-44):40}"
	cp "$victim" "$dir/perf-symbols/usr/bin/gone/${victim:(-44):40}/elf"
	cp --remove-destination /dev/null "$victim"
	echo x >"$dir/.i.symbols.2147483647.tmp"
	perf record --archive -o "$DUMP"
	perf record --combine -o "$dir/i"
	is_whole "$dir/i"
	has_names "$dir/i" "$dir/perf-symbols"
}

# A full disk leaves what is there.
archives_on_a_full_disk()
{
	local dir=$TMP/full

	mkdir -p "$dir"
	mount -t tmpfs -o size=24M tmpfs "$dir"
	make_victim "$TMP/victim"
	perf record -o "$TMP/k" -M 4M -e cpu-clock -F 499 -g -- "${AT_RANDOM[@]}" "$TMP/victim"
	cp "$(dumps "$TMP/k")" "$dir/k"
	dd if=/dev/zero of="$dir/filler" bs=64k 2>/dev/null || true
	fails 1 'cannot (keep the files|create or open).*No space left' \
		perf record --archive -o "$dir/k"
	find "$dir" -name '.*.*' ! -name .build-id | not grep .
	not test -e "$dir/k.symbols"
	rm "$dir/filler"
	perf record --archive -o "$dir/k"
	is_whole "$dir/k"
	has_names "$dir/k" "$dir/perf-symbols"
	cp "$dir/k" "$dir/m"
	dd if=/dev/zero of="$dir/filler" bs=64k 2>/dev/null || true
	fails 1 'No space left' perf record --archive -o "$dir/m"
	rm "$dir/filler"
	is_whole "$dir/k"
	has_names "$dir/k" "$dir/perf-symbols"
	umount "$dir"
}

# make_jit FILE: a program that makes its code itself, and names it as JIT compilers do
make_jit()
{
	cc -x c -O0 -o "$1" - <<-'END'
		#include <stdio.h>
		#include <string.h>
		#include <sys/mman.h>
		#include <time.h>
		#include <unistd.h>
		/* mov $1000000,%ecx; dec %ecx; jnz; ret */
		static const unsigned char code[] = {
			0xb9, 0x40, 0x42, 0x0f, 0x00, 0xff, 0xc9, 0x75, 0xfc, 0xc3,
		};
		int main(void)
		{
			void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
				       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
			time_t end = time(NULL) + 2;
			char name[64];
			FILE *f;
			memcpy(p, code, sizeof(code));
			snprintf(name, sizeof(name), "/tmp/perf-%d.map", getpid());
			f = fopen(name, "w");
			fprintf(f, "%lx %zx jit_made_this\n", (unsigned long)p, sizeof(code));
			fclose(f);
			printf("%d\n", getpid());
			fflush(stdout);
			while (time(NULL) < end)
				((void (*)(void))p)();
		}
	END
}

names_jit()
{
	"$BASE_PERF" report -i "$DUMP" --stdio -g none --no-children --sort sym \
		>"$TMP/report" 2>/dev/null
	grep -q ' jit_made_this$' "$TMP/report"
}

# The program has exited, and its map is gone; a link is not followed.
archives_jit_maps()
{
	local map dir=$TMP/jits

	mkdir "$dir"
	make_jit "$TMP/jit"
	perf record -o "$dir/n" -M 8M -e cpu-clock -F 499 -- \
		"${AT_RANDOM[@]}" "$TMP/jit" >"$TMP/pid"
	DUMP=$(dumps "$dir/n")
	map=/tmp/perf-$(cat "$TMP/pid").map
	names_jit
	perf record --archive -o "$DUMP"
	# The same version is there once.
	perf record --archive -o "$DUMP"
	[ "$(stored "$DUMP" | grep -c '^jit/')" = 1 ]
	is_whole "$DUMP"
	mv "$map" "$TMP/map"
	not names_jit
	# As the man page says.
	grep '^jit/' "$DUMP.symbols" | (cd "$dir/perf-symbols" && xargs -r cp -nt /tmp)
	names_jit
	cmp "$map" "$TMP/map"
	rm "$map" "$DUMP.symbols"

	ln -s "$TMP/map" "$map"
	perf record --archive -o "$DUMP"
	stored "$DUMP" | not grep "${map##*/}"
	rm "$map"
	mkfifo "$map"
	perf record --archive -o "$DUMP"
	stored "$DUMP" | not grep "${map##*/}"
	rm "$map"
	truncate -s 65M "$map"
	fails 0 'files that .* do not exist or are not readable' perf record --archive -o "$DUMP"
	stored "$DUMP" | not grep "${map##*/}"
	rm "$map"
}

# What cannot be kept is told, and leaves nothing.
tells_of_archives()
{
	local dir=$TMP/tells id

	mkdir "$dir"
	make_victim "$TMP/victim"
	perf record -o "$dir/j" -M 4M -e cpu-clock -F 499 -- "${AT_RANDOM[@]}" "$TMP/victim"
	DUMP=$(dumps "$dir/j")
	# Others may change it, or its place.
	mkdir "$dir/perf-symbols"
	chmod 777 "$dir/perf-symbols"
	fails 1 'is no directory that belongs to this user' perf record --archive -o "$DUMP"
	mv "$dir/perf-symbols" "$TMP/theirs"
	chmod 700 "$TMP/theirs"
	ln -s "$TMP/theirs" "$dir/perf-symbols"
	fails 1 'is no directory that belongs to this user' perf record --archive -o "$DUMP"
	[ -z "$(ls -A "$TMP/theirs")" ]
	rm "$dir/perf-symbols"
	: >"$dir/perf-symbols"
	# The command comes nevertheless.
	fails 0 'it ran' perf record --archive -o "$DUMP" --on-dump "echo it ran; :"
	rm "$dir/perf-symbols"
	not test -e "$DUMP.symbols"

	# What the cache has is there as well; what neither has is gone.
	perf --buildid-dir "$TMP/cached" buildid-cache -a "$TMP/victim"
	rm "$TMP/victim"
	perf --buildid-dir "$TMP/cached" record --archive -o "$DUMP"
	has_names "$DUMP" "$dir/perf-symbols"
	rm -r "$dir/perf-symbols" "$DUMP.symbols"
	fails 0 'files that .* do not exist or are not readable' perf record --archive -o "$DUMP"
	stored "$DUMP" | not grep victim

	# The kernel that runs now is not that of the dump.
	id=$(perf buildid-list -k)
	python3 - "$DUMP" "$id" <<-'END'
		import sys
		old = bytes.fromhex(sys.argv[2])
		data = open(sys.argv[1], 'rb').read()
		assert old in data
		open(sys.argv[1], 'wb').write(data.replace(old, old[::-1]))
	END
	rm -r "$dir/perf-symbols" "$DUMP.symbols"
	fails 0 'files that .* do not exist or are not readable' perf record --archive -o "$DUMP"
	stored "$DUMP" | not grep kallsyms

	fails 1 'cannot keep the files of' perf record --archive -o "$TMP/nothing"
	fails 1 'archive without -M records nothing' perf record --archive -a true
}

flight_begin
check "archive: names after an upgrade, elsewhere" archives
check "archive: a combined file" archives_combined
check "archive: two recorders in a directory" archives_of_two
check "archive: killed" archives_survive
check "archive: a full disk" archives_on_a_full_disk
check "archive: what cannot be kept is told" tells_of_archives
if [ "$(uname -m)" = x86_64 ]; then
	check "archive: maps of JIT compilers" archives_jit_maps
else
	leave_out "archive: maps of JIT compilers" "the test has code for x86-64 alone"
fi
persistent_end
