#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Build the kernels of other series that suites need, and their perf. Of a series whose source
# cannot be fetched, they are skipped. A build that fails is an error.
#
# usage: build-newer.sh      ONLY and SUITES as for run-tests.sh
set -euo pipefail
# shellcheck source=tools/testing/vm/lib.sh
. "${BASH_SOURCE[0]%/*}/lib.sh"

VM=$TOP/tools/testing/vm
while read -r -u 3 base variant; do
	if BASE=$base "$VM/deps.sh"; then
		BASE=$base "$VM/build.sh" all "$variant"
	elif [ ! -f "$BUILD/$base/source/linux-source-$base.tar.xz" ]; then
		rm -f "$BUILD/$base/$variant/bzImage"
		say "the suites of Linux $base are skipped"
	else
		exit 1
	fi
done 3< <("$VM/run-tests.sh" --kernels)
