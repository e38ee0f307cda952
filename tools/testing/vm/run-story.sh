#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# make run: run the main job in the test machine with two CPUs, and let the machine die.
set -euo pipefail
# shellcheck source=tools/testing/vm/lib.sh
. "${BASH_SOURCE[0]%/*}/lib.sh"

# shellcheck source=tools/testing/vm/story-hot.sh
. "${BASH_SOURCE[0]%/*}/story-hot.sh"

build_hot
export OUT=$BUILD/out VARIANT=patched SMP=2 ACCEL=single TIMEOUT=${TIMEOUT:-300}
# shellcheck disable=SC2016 # for the guest's shell
CMD='exec bash "$TOP/tools/testing/vm/story.sh"' "$TOP/tools/testing/vm/vm.sh"
OUT=$OUT/story-death "$TOP/tools/testing/vm/story-death.sh"
say "what was recorded is in $OUT and $OUT/story-death"
