#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# In the test machine: make what take-pictures.sh takes pictures of. In $OUT:
#   incident.html	the page of an incident
#   incident.samples	CPU and time of the samples of its cause
#   terminal.txt	what a terminal showed: '# COMMAND', and what it printed
#
# The programs run from directories of the guest: no path of the host gets into a recording.
set -euo pipefail

install_programs()
{
	mount --bind "$BUILD/patched" /usr/local
	mount -t tmpfs srv /srv
	cp "$BUILD/vm/shopd" /srv
	export PATH=/usr/local/bin:/srv:/usr/sbin:/usr/bin:/sbin:/bin HOME=/srv
	export PERF_EXEC_PATH=/usr/local/libexec/perf-core
	unset TOP
	cd /srv
	echo shop1 >/proc/sys/kernel/hostname
	# An emulator takes long to sample: that must not make the kernel sample less.
	echo 0 >/proc/sys/kernel/perf_cpu_time_max_percent
}

# wait_for GLOB
wait_for()
{
	local n

	for ((n = 0; n < 300; n++)); do
		! compgen -G "$1" >/dev/null || return 0
		sleep 0.2
	done
	echo "there is no $1 after a minute"
	return 1
}

# shopd itself asks for the dump, for the first request that takes too long.
incident()
{
	local recorder dump

	perf record -M 32M --max-age 6s -a -e cpu-clock/freq=499/ -e sched:sched_switch -g \
		--trigger socket -o blackbox &
	recorder=$!
	wait_for blackbox.sock
	shopd 9 6 blackbox.sock
	wait_for 'blackbox.sample.*Z.json'
	dump=$(compgen -G 'blackbox.sample.*Z')
	kill -INT $recorder
	wait $recorder || true
	perf script report incident -i "$dump" -o "$OUT/incident.html"
	perf script -i "$dump" --comms cache-compactor -F event,cpu,time --ns |
		sed -nE 's/^ *\[0*([0-9]+)\] *([0-9.]+): *cpu-clock.*/\1 \2/p' \
		>"$OUT/incident.samples"
}

# Each command is told before it runs, as a terminal shows it.
terminal()
{
	local command

	while read -r command; do
		printf '# %s\n' "$command"
		eval "$command" </dev/null
		# Else the shell would tell of its own jobs.
		disown -a
	done <<-'END'
		perf record -P blackbox -a -g -e cpu-clock/freq=499/,sched:sched_switch
		shopd 60 2 &
		sleep 5; pkill -KILL shopd
		perf ctl -l
		perf record -e persistent/blackbox/ -N -o crash.data
		perf report -i crash.data -q --stdio --no-children -g none --percent-limit 4
		perf ctl -d blackbox
	END
}

main()
{
	install_programs
	incident
	terminal >"$OUT/terminal.txt" 2>&1
	cat "$OUT/terminal.txt"
}

main
