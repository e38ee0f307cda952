# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# What the tests of triggers that fire by themselves share. Sourced, not run; wants
# lib/flight.sh. FLIGHT_TIMES: how often each is tried. FLIGHT_FULL: the memory of the recorder
# is full before the cause. With both, all dumps are to be complete within FLIGHT_ALL_MS, of
# which the tries of one kind may have one that is not: a host that stands still is no
# slow recorder. FLIGHT_QUIET=only: what must not fire them, alone.
[ "${FLIGHT_QUIET-}" != only ] || export CHECK_ONLY=${CHECK_ONLY:-again}
TIMES=${FLIGHT_TIMES:-1}
ALL_MS=${FLIGHT_ALL_MS:-1000}

# again FUNCTION: TIMES times, each in a shell of its own, and once more for each that stood_still
again()
{
	local i still=0

	: >"$TMP/took"
	for ((i = 0; i < TIMES + still; i++)); do
		echo "$1, $i times before"
		# Not in a condition, where errors do not end it.
		("$1")
		rm -f "$TMP"/*.sample.*
		[ -e "$TMP/still" ] || continue
		rm "$TMP/still"
		((++still <= 20))
	done
	[ "$TIMES" -gt 1 ] && [ -s "$TMP/took" ] || return 0
	sort -n "$TMP/took" | awk -v what="$1" -v times="$TIMES" -v all="$ALL_MS" '{ ms[NR] = $1 }
		END { printf "# %s, %d times: %d dumps, half complete after %d ms, ",
			what, times, NR, ms[int((NR + 1) / 2)];
		      printf "all but one after %d, all after %d\n", ms[NR - 1], ms[NR];
		      exit !(ms[NR - 1] < all) }' >>"$TMP/figures"
}

# ms from the trigger, by the clock of the records, to the manifest, which is written last
note_time()
{
	python3 - "$1.json" "$(json "$1" trigger_time)" <<-'END' | tee -a "$TMP/took"
		import os, sys, time
		offset = time.time() - time.monotonic()
		print(round(1000 * (os.stat(sys.argv[1]).st_mtime - offset - float(sys.argv[2]))))
	END
}

# A container of a pod, as Kubernetes names its cgroup with systemd: 190 bytes below the mount
CONTAINER=$(printf '%064x' 12648430)
POD=6f2c1d3e-0a4b-4c5d-8e9f-123456789abc
POD_CGROUP=/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod${POD//-/_}.slice
POD_CGROUP+=/cri-containerd-$CONTAINER.scope

BUNDLE=/run/containerd/io.containerd.runtime.v2.task/k8s.io/$CONTAINER

# run_container: containerd has the bundle of a container that runs
run_container()
{
	mkdir -p "$BUNDLE"
	cat >"$BUNDLE/config.json" <<-'END'
		{"ociVersion": "1.1.0", "process": {"env": ["A={"]}, "annotations": {
		"io.kubernetes.cri.container-name": "web",
		"io.kubernetes.cri.sandbox-name": "shop-7d9",
		"io.kubernetes.cri.sandbox-namespace": "shop"}}
	END
}

# names_container CGROUP: the manifest does, by the whole path of the cgroup
names_container()
{
	local kept='{ "name": "web", "pod": "shop-7d9", "pod_namespace": "shop" }'

	[ "$(json "$DUMP" trigger_container_name)" = web ]
	[ "$(json "$DUMP" trigger_pod)" = shop-7d9 ]
	[ "$(json "$DUMP" trigger_pod_namespace)" = shop ]
	grep -qF "\"$CONTAINER\": $kept" "$DUMP.json"
	rm -r "$BUNDLE"
	[ "$(json "$DUMP" trigger_cgroup)" = "$1" ]
	[ "$(json "$DUMP" trigger_container)" = "$CONTAINER" ]
	[ "$(json "$DUMP" trigger_pod_uid)" = "$POD" ]
}

# start NAME TRIGGER [COOLDOWN]: without one, so that nothing is hidden by it
start()
{
	local full=()

	[ -z "${FLIGHT_FULL-}" ] || full=(-e syscalls:sys_enter_write)
	start_recorder "$TMP/$1" -M 4M -e cpu-clock/freq=199/ "${full[@]}" -a --trigger signal \
		--trigger "$2,cooldown=${3:-0}"
	[ -z "${FLIGHT_FULL-}" ] || dd if=/dev/zero of=/dev/null bs=1 count=60000 2>/dev/null
}

# hit KIND: there is one dump, of that kind; sets DUMP, and prints its manifest's head
hit()
{
	wait_for has_dumps "$OUT_NAME" 1
	DUMP=$(dumps "$OUT_NAME" | sed -n 1p)
	sed -n '/"trigger_time"/p; /"trigger"/,/"swallowed"/p; /"oldest"/p' "$DUMP.json"
	[ "$(json "$DUMP" trigger)" = "$1" ]
	opens "$DUMP"
	# Full: a round is evicted as a whole, and can be as large as the kernel's ring buffers
	# together, a quarter of the memory.
	[ -z "${FLIGHT_FULL-}" ] || [ "$(stat -c %s "$DUMP")" -gt $((3 << 20)) ]
	# The cause is in the window, and it did not begin with it.
	awk "BEGIN { exit !($(json "$DUMP" oldest) < $(json "$DUMP" trigger_time) &&
		$(json "$DUMP" trigger_time) <= $(json "$DUMP" newest) + 1) }"
	note_time "$DUMP"
}

# After what is no cause; the recorder has had QUIET seconds, for a few passes.
QUIET=0.5
no_dump()
{
	sleep "$QUIET"
	[ -z "$(dumps "$OUT_NAME")" ] || { grep reason "$OUT_NAME".sample.*.json; return 1; }
}

# The same. With FLIGHT_QUIET=only the recorder ends, without a dump, and so does this try.
quiet()
{
	no_dump
	[ "${FLIGHT_QUIET-}" = only ] || return 0
	end 0
	exit
}

# stood_still MS LIMIT: did what is no cause take MS, and not less than LIMIT, as the machine stood
# still? It is one then: this try ends, and does not count.
stood_still()
{
	[ "$1" -ge "$2" ] || return 0
	echo "$1 ms are no less than $2 ms: once more"
	stop_recorder INT
	: >"$TMP/still"
	exit 0
}

# ms_since MICROSECONDS: by EPOCHREALTIME
ms_since()
{
	echo $(((${EPOCHREALTIME/[.,]/} - $1) / 1000))
}

# end N: it ends with so many dumps, without the last one
end()
{
	stop_recorder INT
	[ "$(($(dumps "$OUT_NAME" | wc -l) - 1))" = "$1" ] ||
		{ grep reason "$OUT_NAME".sample.*.json; return 1; }
}
