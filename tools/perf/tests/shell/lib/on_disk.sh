# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# What the tests of dumps on disk share. Sourced, not run; wants lib/flight.sh.

# dump_next: as dump(), where dumps go while others come
# shellcheck disable=SC2034 # for the scripts that source this
dump_next()
{
	local newest

	newest=$(newest_dump "$OUT_NAME")
	kill -USR1 "$RECORDER"
	wait_for has_newer "$newest"
	DUMP=$(newest_dump "$OUT_NAME")
}

has_newer()
{
	[ "$(newest_dump "$OUT_NAME")" != "$1" ]
}

# has_names DUMP CACHE: names of functions from the cache alone
has_names()
{
	HOME=$TMP/empty "$BASE_PERF" --buildid-dir "$2" report -i "$1" --stdio -g none \
		--no-children --sort comm,dso,sym >"$TMP/report" 2>/dev/null
	grep -qE ' victim +victim +\[\.\] victim_loop' "$TMP/report"
}

# make_victim FILE [OPTION...]: a program with a function that takes its time, in the kernel
# as well, made with options of the compiler
make_victim()
{
	cc -x c -g -O0 -fno-omit-frame-pointer -Wl,--build-id "${@:2}" -o "$1" - <<-END
		#include <time.h>
		#include <unistd.h>
		volatile unsigned long n;
		static void victim_loop(void) { for (int i = 0; i < 100000; i++) n++; }
		int main(void)
		{
			time_t end = time(NULL) + 2;
			while (time(NULL) < end) {
				victim_loop();
				for (int i = 0; i < 1000; i++)
					close(-1);
			}
		}
	END
}
