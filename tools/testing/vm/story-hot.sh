# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# What the stories of 'make run' share: how they are told, and the program with a hot function. To
# be sourced where TOP is set.

export HOT=$BUILD/vm/story-hot
HOT_FUNCTION=story_hot_function

# On the host
build_hot()
{
	if [ ! -x "$HOT" ] || [ "$TOP/tools/testing/vm/story-hot.c" -nt "$HOT" ]; then
		gcc -O1 -g -fno-omit-frame-pointer -fno-inline -Wall -Wextra -Werror -o "$HOT" \
			"$TOP/tools/testing/vm/story-hot.c"
	fi
}

chapter()
{
	printf '\n== %s\n' "$*"
}

show()
{
	printf '$ %s\n' "$*"
	"$@"
}

fail()
{
	printf '\nThe story does not hold: %s\n' "$*"
	exit 1
}

# hot_percent REPORT: of the hot function
hot_percent()
{
	sed -n "s/^ *\([0-9.]*\)%.*story-hot .*$HOT_FUNCTION.*/\1/p;T;q" "$1"
}

# show_report DATA REPORT LINES: write a report, and show its first lines
show_report()
{
	printf '$ perf report -i %s --no-children --sort comm,dso,symbol | head\n' "$1"
	perf report -i "$1" --stdio --no-children -g none --sort comm,dso,symbol 2>/dev/null >"$2"
	# Remove the column of cycles, which is empty here.
	sed -n "/cpu-clock/,\$ {
		s/Symbol  *IPC.*/Symbol/; s/^\(#\( *\.\.*\)\{4\}\) .*/\1/
		s/ *\( - *- *\)\{0,1\}\$//p
	}" "$2" | cut -c1-110 >/tmp/head
	head -n "$3" /tmp/head
	[ -n "$(hot_percent "$2")" ] ||
		fail "the hot function of the dead program has no name in the report"
}
