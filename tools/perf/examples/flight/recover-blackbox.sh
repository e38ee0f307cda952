#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Recover what the last boot left in black boxes, for perf-flight-recover.service.
#
# usage: recover-blackbox.sh PERF DIRECTORY
#
# Each image of a kernel that died becomes DIRECTORY/LABEL.UUID/perf.data, with a manifest
# beside it. UUID is that of the boot that died. An image that is recovered as a whole is
# released. Another one is kept by the kernel. It is recovered once: the file "done" says so.
set -eu
umask 077

perf=$1
dir=$2
last=${SYSFS_PATH:-/sys}/bus/event_source/devices/persistent/last
status=0

# perf_blackbox_super::boot_uuid of an image
boot_uuid()
{
	od -An -v -tx1 -j56 -N16 "$1" | tr -d ' \n'
}

# recover IMAGE LABEL.N
recover()
{
	to=$dir/${2%.*}.$(boot_uuid "$1")
	if [ -e "$to/done" ]; then
		echo "$2 was recovered to $to before." \
			"If perf ctl lists it as a death, not all of it was."
		return 0
	fi
	mkdir -p "$to"
	failed=0
	"$perf" data recover --release -f --last "$2" -o "$to/perf.data" || failed=1
	# Nothing was written if it was no death, or if nothing of it can be read.
	rmdir "$to" 2>/dev/null || [ "$failed" = 1 ] || : >"$to/done"
	return "$failed"
}

for image in "$last"/*; do
	case $image in
	*.release) ;;
	*) [ ! -f "$image" ] || recover "$image" "${image##*/}" || status=1 ;;
	esac
done
exit "$status"
