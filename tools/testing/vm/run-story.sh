#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# make run: run the main job in the test machine with two CPUs.
set -euo pipefail
# shellcheck source=tools/testing/vm/lib.sh
. "${BASH_SOURCE[0]%/*}/lib.sh"

hot=$BUILD/vm/story-hot
if [ ! -x "$hot" ] || [ "$TOP/tools/testing/vm/story-hot.c" -nt "$hot" ]; then
	gcc -O1 -g -fno-omit-frame-pointer -fno-inline -Wall -Wextra -Werror -o "$hot" \
		"$TOP/tools/testing/vm/story-hot.c"
fi

export OUT=$BUILD/out VARIANT=patched SMP=2 ACCEL=single TIMEOUT=${TIMEOUT:-300}
# shellcheck disable=SC2016 # for the guest's shell
CMD='exec bash "$TOP/tools/testing/vm/story.sh"' "$TOP/tools/testing/vm/vm.sh"
say "what it recorded is in $OUT"
