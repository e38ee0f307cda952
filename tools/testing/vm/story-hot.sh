# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The program of the stories; to be sourced after lib.sh

HOT=$BUILD/vm/story-hot

build_hot()
{
	if [ ! -x "$HOT" ] || [ "$TOP/tools/testing/vm/story-hot.c" -nt "$HOT" ]; then
		gcc -O1 -g -fno-omit-frame-pointer -fno-inline -Wall -Wextra -Werror -o "$HOT" \
			"$TOP/tools/testing/vm/story-hot.c"
	fi
}
