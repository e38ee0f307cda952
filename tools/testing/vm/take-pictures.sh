#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# make pictures: take those of media/ anew. The test machine makes what is on them, a
# headless Chromium of the host takes them. Best on a machine that is idle otherwise: what
# the emulator misses is missing in the pictures.
#
# usage: take-pictures.sh [DIRECTORY]	media/ unless given
set -euo pipefail
# shellcheck source=tools/testing/vm/lib.sh
. "${BASH_SOURCE[0]%/*}/lib.sh"

VM=$TOP/tools/testing/vm
PICTURES=${1:-$TOP/media}
MOST_BYTES=$((300 * 1024))

build_server()
{
	gcc -O1 -static -pthread -fno-inline -fno-omit-frame-pointer -Wall -Wextra -Werror \
		-o "$BUILD/vm/shopd" "$VM/picture-server.c"
}

# The guest sees the host's files: a path of them would tell of the developer's machine.
check_paths()
{
	local file path

	for file in incident.html terminal.txt; do
		# What is looked for below would be found in this file.
		grep -qF http-worker "$OUT/$file" || die "$OUT/$file does not name http-worker"
		for path in "$TOP" "$HOME"; do
			[ ${#path} -gt 1 ] || continue
			! grep -qF "$path" "$OUT/$file" ||
				die "$OUT/$file names $path: no picture is taken"
		done
	done
}

main()
{
	local picture size

	command -v chromedriver >/dev/null || die "chromium-driver is missing: run 'make deps'"
	export OUT=$BUILD/out/pictures VARIANT=patched SMP=4 ACCEL=single TIMEOUT=${TIMEOUT:-600}
	rm -rf "$OUT"
	mkdir -p "$OUT" "$PICTURES" "$BUILD/vm"
	build_server
	# shellcheck disable=SC2016 # for the guest's shell
	CMD='exec bash "$TOP/tools/testing/vm/picture-session.sh"' "$VM/vm.sh"
	check_paths
	python3 "$VM/take-pictures.py" "$OUT"
	for picture in incident.png terminal.png; do
		size=$(stat -c %s "$OUT/$picture")
		((size <= MOST_BYTES)) || die "$picture has $size bytes, more than $MOST_BYTES"
		cp "$OUT/$picture" "$PICTURES"
		say "$PICTURES/$picture: $size bytes"
	done
}

main
