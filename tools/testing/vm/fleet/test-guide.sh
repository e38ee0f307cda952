#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Run the commands of perf-fleet.rst with OpenStack Swift. Prints TAP.
set -uo pipefail
# shellcheck source=tools/testing/vm/fleet/lib.sh
. "${BASH_SOURCE[0]%/*}/lib.sh"
# shellcheck source=tools/testing/vm/fleet/swift.sh
. "${BASH_SOURCE[0]%/*}/swift.sh"

fleet_begin "$@"
swift_start || exit 1
TMPDIR=$TMP "$TOP/tools/testing/vm/test-guide.sh" \
	"$TOP/Documentation/admin-guide/perf/perf-fleet.rst"
