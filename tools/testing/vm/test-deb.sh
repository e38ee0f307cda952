#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Test the packages of 'make deb' in a separate Debian: install them together with
# linux-perf, boot the installed kernel, initramfs and disk in QEMU, use them there, and
# remove them without leaving files behind. Prints TAP.
#
# usage: test-deb.sh            everything; needs root, the network and some minutes
#        test-deb.sh --quick    check the content of the perf package without installing it
#        test-deb.sh --guest    the part that runs in the machine
#
# NO_BUILD=1 uses the packages in build/deb. CONFIG=FILE builds them with this kernel
# configuration, as 'make deb' does; that of a distribution takes an hour or more.
#
# debootstrap creates the Debian once (the suite of this machine, for which perf was
# linked), in build/roots. MIRROR selects another mirror.
set -uo pipefail
# shellcheck source=tools/testing/vm/lib.sh
. "${BASH_SOURCE[0]%/*}/lib.sh"
# shellcheck source=tools/testing/vm/tap.sh
. "${BASH_SOURCE[0]%/*}/tap.sh"
# shellcheck source=tools/testing/vm/mirror.sh
. "${BASH_SOURCE[0]%/*}/mirror.sh"

DEB=$BUILD/deb
WORK=$BUILD/deb/test
ROOT=$WORK/root
MIRROR=${MIRROR:-$(debian_mirror)}
SUITE=$(. /etc/os-release && echo "$VERSION_CODENAME")
INCLUDE=systemd,systemd-sysv,udev,kmod,initramfs-tools,zstd,bash-completion,man-db,procps
export LC_ALL=C PATH=$PATH:/usr/sbin:/sbin

perf_package()
{
	echo "$DEB"/perf-flight_*.deb
}

image_package()
{
	echo "$DEB"/linux-image-*-flight_*.deb
}

# There is a headers package only with CONFIG.
kernel_packages()
{
	local package
	for package in "$DEB"/linux-{image,headers}-*-flight_*.deb; do
		[ ! -e "$package" ] || echo "$package"
	done
}

# --quick

# The paths in a package; directories end with a slash.
contents()
{
	dpkg-deb -c "$(perf_package)" | awk '{ sub(/^\./, "", $6); print $6 }'
}

holds()
{
	local path
	for path; do
		grep -qxF "$path" "$WORK/contents" || { echo "$path is not in it"; return 1; }
	done
}

is_complete()
{
	local text name
	contents >"$WORK/contents"
	holds /usr/bin/perf-flight /usr/lib/perf-flight/bin/perf \
		/usr/share/bash-completion/completions/perf-flight \
		/usr/lib/systemd/system/perf-flight{,-recover,-note@,-join@}.service \
		/usr/lib/udev/rules.d/90-perf-flight.rules \
		/usr/lib/perf-flight/libexec/perf-core/recover-blackbox.sh \
		/usr/lib/tmpfiles.d/perf-flight.conf \
		/usr/lib/perf-flight/libexec/perf-core/scripts/python/incident.py \
		/usr/lib/perf-flight/libexec/perf-core/scripts/python/incident/incident.html \
		/usr/share/doc/perf-flight/examples/{Makefile,load.c,slow-syscall.bpf.c} \
		/usr/share/doc/perf-flight/examples/deadline.{c,h,py,sh} \
		/usr/share/doc/perf-flight/examples/{upload-dump.sh,perf-flight-daemonset.yaml} \
		/usr/share/doc/perf-flight/examples/{dump-line.sh,fleet/hooks.json} ||
		return
	for text in "$BUILD"/patched/src/tools/perf/Documentation/perf-*.txt; do
		name=$(basename "$text" .txt)
		holds "/usr/lib/perf-flight/share/man/man1/$name.1.gz" \
			"/usr/share/man/man1/perf-flight-${name#perf-}.1.gz" || return
	done
}

# Only directories may be in both packages; linux-perf is installed here or downloaded.
has_no_file_of_linux_perf()
{
	contents | grep -v '/$' | sort >"$WORK/ours"
	linux_perf_files | sort >"$WORK/theirs"
	[ "$(wc -l <"$WORK/theirs")" -gt 50 ] || return
	! comm -12 "$WORK/ours" "$WORK/theirs" | grep .
}

linux_perf_files()
{
	local path
	if dpkg -s linux-perf >/dev/null 2>&1; then
		dpkg -L linux-perf | while read -r path; do
			[ -d "$path" ] || echo "$path"
		done
	else
		(cd "$WORK" && apt-get -qq download linux-perf && dpkg-deb -c linux-perf_*.deb) |
			awk '{ sub(/^\./, "", $6); print $6 }' | grep -v '/$'
	fi
}

tells_what_it_is()
{
	dpkg-deb -f "$(perf_package)" >"$WORK/control"
	cat "$WORK/control"
	grep -qx 'Package: perf-flight' "$WORK/control" &&
		grep -q '^Depends: .*libc6' "$WORK/control" &&
		! grep -q '^Conflicts\|^Replaces' "$WORK/control"
}

# It runs wherever it is unpacked, and its man pages can be read.
runs_unpacked()
{
	rm -rf "$WORK/unpacked"
	dpkg-deb -x "$(perf_package)" "$WORK/unpacked" &&
		"$WORK/unpacked/usr/lib/perf-flight/bin/perf" version &&
		zcat "$WORK/unpacked/usr/lib/perf-flight/share/man/man1/perf-ctl.1.gz" |
			grep -q 'persistent sessions' &&
		[ "$(readlink "$WORK/unpacked/usr/share/man/man1/perf-flight-ctl.1.gz")" = \
			../../../lib/perf-flight/share/man/man1/perf-ctl.1.gz ] &&
		bash -n "$WORK/unpacked/usr/share/bash-completion/completions/perf-flight" &&
		systemd_agrees
}

# From nothing but the package, clang and libbpf; the client of the deadlines from C alone.
examples_build()
{
	local made=$WORK/examples

	rm -rf "$made"
	cp -r "$WORK/unpacked/usr/share/doc/perf-flight/examples" "$made" &&
		make -s -C "$made" all deadline && ls -l "$made" &&
		[ -x "$made/load" ] && [ -x "$made/deadline" ] &&
		readelf -SW "$made/slow-syscall.bpf.o" |
			grep -q tracepoint/raw_syscalls/sys_enter
}

# The programs of the units are not installed here; ignore only this error.
systemd_agrees()
{
	local units=$WORK/unpacked/usr/lib/systemd/system
	! systemd-analyze verify --man=no \
		"$units"/perf-flight{,-recover,-note@,-join@}.service 2>&1 |
		grep 'perf-flight' | grep -v 'is not executable'
}

# The Debian

# in_root COMMAND...: run a command with what maintainer scripts need
in_root()
{
	mount -t proc none "$ROOT/proc" || return
	chroot "$ROOT" env DEBIAN_FRONTEND=noninteractive HOME=/root \
		PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"
	local rc=$?
	umount "$ROOT/proc"
	return $rc
}

make_root()
{
	local tar=$BUILD/roots/$SUITE.tar
	if [ ! -s "$tar" ] || [ "$(cat "$tar.holds" 2>/dev/null)" != "$INCLUDE" ]; then
		rm -rf "$BUILD/roots/$SUITE.new"
		mkdir -p "$BUILD/roots"
		debootstrap --variant=minbase --include=$INCLUDE "$SUITE" \
			"$BUILD/roots/$SUITE.new" "$MIRROR" || return
		rm -f "$BUILD/roots/$SUITE.new"/var/cache/apt/archives/*.deb
		tar -C "$BUILD/roots/$SUITE.new" --numeric-owner -cf "$tar.new" . &&
			mv "$tar.new" "$tar" && echo "$INCLUDE" >"$tar.holds" &&
			rm -rf "$BUILD/roots/$SUITE.new" || return
	fi
	rm -rf "$ROOT"
	mkdir -p "$ROOT"
	tar -C "$ROOT" --numeric-owner -xf "$tar"
}

# linux-perf and our dependencies; these may stay when our packages are removed.
install_others()
{
	local depends
	cp /etc/resolv.conf "$ROOT/etc/resolv.conf"
	depends=$(dpkg-deb -f "$(perf_package)" Depends |
		sed 's/([^)]*)//g; s/|[^,]*//g; s/,/ /g')
	in_root apt-get -qq update || return
	# shellcheck disable=SC2086 # a list of words
	in_root apt-get -qq -y --no-install-recommends install linux-perf python3 $depends
	in_root apt-get clean
}

# All files in the root with type, size and content, except for those that dpkg changes.
list_root()
{
	(cd "$ROOT" && find . -xdev \( -path ./var/cache -o -path ./var/log -o \
		-path ./var/lib/dpkg -o -path ./var/lib/systemd -o -path ./proc -o \
		-path ./run -o -path ./var/lib/apt -o -path ./tmp \) -prune -o -type f -print0 |
		sort -z | xargs -0 md5sum &&
	 find . -xdev \( -path ./var/cache -o -path ./var/lib/dpkg -o -path ./proc \) \
		-prune -o ! -type f -printf '%y %p %l\n' | sort)
}

install_ours()
{
	local name
	list_root >"$WORK/before"
	mkdir -p "$ROOT/packages"
	kernel_packages | xargs cp -t "$ROOT/packages" "$(perf_package)"
	# The commands of packages.rst, with apt-get, which is meant for scripts.
	in_root sh -c 'cd / && apt-get -y install ./packages/*.deb' || return
	rm -r "$ROOT/packages"
	for name in vmlinuz initrd.img config System.map; do
		[ -s "$(echo "$ROOT/boot/$name-"*-flight)" ] || { echo "no /boot/$name"; return 1; }
	done
}

both_perfs_run()
{
	[ "$(in_root perf-flight version)" != "$(in_root perf version)" ] &&
		[ -z "$(in_root dpkg --verify perf-flight linux-perf)" ] &&
		in_root perf-flight ctl --help >"$WORK/help" 2>&1
	grep -q 'persistent sessions' "$WORK/help" || { cat "$WORK/help"; return 1; }
}

removes_cleanly()
{
	local package names=()
	for package in $(kernel_packages); do
		names+=("$(dpkg-deb -f "$package" Package)")
	done
	in_root apt-get -y remove "${names[@]}" && in_root apt-get -y purge perf-flight || return
	list_root >"$WORK/after"
	diff "$WORK/before" "$WORK/after"
}

# The machine

make_disk()
{
	local unit=$ROOT/etc/systemd/system/test-deb.service
	# Remove what was added for the machine.
	install -m 755 "${BASH_SOURCE[0]}" "$ROOT/test-deb"
	cat >"$unit" <<-'END'
		[Unit]
		After=multi-user.target
		[Service]
		Type=oneshot
		Environment=HOME=/root
		ExecStart=-/bin/bash -c '/test-deb --guest >/run/said 2>&1'
		ExecStart=/bin/bash -c 'cat /run/said >/dev/virtio-ports/verdict'
		ExecStopPost=/bin/systemctl --force poweroff
	END
	mkdir -p "$ROOT/etc/systemd/system/multi-user.target.wants"
	ln -sf /etc/systemd/system/test-deb.service \
		"$ROOT/etc/systemd/system/multi-user.target.wants/test-deb.service"
	cp "$VM/tap.sh" "$VM/lib.sh" "$VM/mirror.sh" "$ROOT"
	rm -f "$WORK/disk"
	mke2fs -q -t ext4 -d "$ROOT" "$WORK/disk" 4G
	local rc=$?
	rm -r "$unit" "$ROOT/etc/systemd/system/multi-user.target.wants/test-deb.service" \
		"$ROOT/test-deb" "$ROOT/tap.sh" "$ROOT/lib.sh" "$ROOT/mirror.sh"
	return $rc
}

boot()
{
	cp "$(echo "$ROOT"/boot/vmlinuz-*-flight)" "$WORK/vmlinuz"
	cp "$(echo "$ROOT"/boot/initrd.img-*-flight)" "$WORK/initrd"
	: >"$WORK/verdict"
	timeout -k 5 "${LIMIT:-1800}" qemu-system-x86_64 -machine q35 -accel tcg,thread=single \
		-cpu max -m 2G -smp 2 -nodefaults -no-user-config -no-reboot -display none \
		-serial "file:$WORK/console" -device virtio-rng-pci \
		-drive "file=$WORK/disk,format=raw,if=virtio" \
		-device virtio-serial-pci -chardev "file,id=verdict,path=$WORK/verdict" \
		-device virtserialport,chardev=verdict,name=verdict \
		-kernel "$WORK/vmlinuz" -initrd "$WORK/initrd" \
		-append "root=/dev/vda rw console=ttyS0 panic=-1 oops=panic maxcpus=1 \
			systemd.show_status=0"
}

# --guest

runs_the_package()
{
	uname -r | grep -e '-flight$' && dpkg -S "/boot/vmlinuz-$(uname -r)" || return
	# A kernel of a distribution has no built-in configuration, but modules.
	if [ -e /proc/config.gz ]; then
		cmp /boot/config-"$(uname -r)" <(zcat /proc/config.gz)
	else
		lsmod && [ "$(lsmod | wc -l)" -gt 1 ]
	fi
}

# has_both_cpus SESSION: at last
has_both_cpus()
{
	local i cpus=/sys/bus/event_source/devices/persistent/sessions/$1/cpus
	for ((i = 0; i < 300; i++)); do
		[ "$(cat "$cpus")" != 0-1 ] || return 0
		sleep 0.2
	done
	return 1
}

# It has never been online: udev starts the unit, and the unit joins it. A frozen session gets
# it when it is thawed.
new_cpu_joins()
{
	local cpus=/sys/bus/event_source/devices/persistent/sessions/grows/cpus rc=0
	[ "$(cat /sys/devices/system/cpu/online)" = 0 ] || return
	perf-flight record -P grows -e cpu-clock -F 99 -a &&
		perf-flight record -P waits -e cpu-clock -F 99 -a &&
		perf-flight ctl --freeze waits || return
	[ "$(cat $cpus)" = 0 ] && echo 1 >/sys/devices/system/cpu/cpu1/online || return
	has_both_cpus grows && perf-flight ctl --thaw waits && has_both_cpus waits || rc=1
	journalctl --no-pager -u perf-flight-join@1 -u perf-flight-join@online
	# The lock of the unit is there, and stays.
	ls -la /run/perf/0
	[ "$(stat -c '%u %a' /run/perf/0)" = '0 700' ] && [ -f /run/perf/0/join.lock ] &&
		[ $rc = 0 ] && perf-flight ctl -d grows waits
}

session_outlives_its_maker()
{
	perf-flight record -P blackbox -e cpu-clock -F 99 -a &&
		perf-flight bench sched messaging -g 1 -l 20 &&
		perf-flight ctl -l | grep '^blackbox ' &&
		perf-flight record -e persistent/blackbox/ -N -o /root/blackbox.data &&
		perf-flight report -i /root/blackbox.data --stdio --sort comm 2>/dev/null |
			grep sched-messaging &&
		perf-flight ctl -d blackbox &&
		[ -z "$(ls /sys/bus/event_source/devices/persistent/sessions)" ]
}

recorder_dumps()
{
	local recorder i
	cd /root || return
	perf-flight record -M 8M -e cpu-clock -F 99 -a -o rec --trigger socket >rec.said 2>&1 &
	recorder=$!
	for ((i = 0; i < 300; i++)); do
		! perf-flight ctl --status=$recorder >rec.answer 2>&1 || break
		sleep 0.2
	done
	sleep 2
	perf-flight ctl --dump=$recorder --reason='dump of the package' >>rec.answer
	kill $recorder
	wait $recorder
	cat rec.said rec.answer
	grep 'rec.sample.*Z' rec.answer && grep -h 'dump of the package' rec.sample.*.json &&
		[ "$(find . -name 'rec.sample.*Z' | wc -l)" = 2 ] || return
	set -- rec.sample.*Z
	perf-flight script -i "$1" -F comm,time | head -n 5 | grep . &&
		perf-flight script report incident -i "$1" -o /root/incident.html &&
		[ -s /root/incident.html ]
}

# With Debian's restriction the unit cannot start and prints the reason. Then follow
# packages.rst.
unit_wants_paranoid_2()
{
	systemctl start perf-flight && return 1
	journalctl --no-pager -u perf-flight | tee /dev/stderr |
		grep 'perf_event_paranoid' || return
	systemctl stop perf-flight
	systemctl reset-failed perf-flight
	echo kernel.perf_event_paranoid=2 >/etc/sysctl.d/perf-flight.conf
	sysctl -p /etc/sysctl.d/perf-flight.conf
}

# The unit is not enabled. With Type=notify, start waits for READY=1.
unit_starts()
{
	! systemctl is-enabled --quiet perf-flight && systemctl start perf-flight || return
	systemctl show perf-flight -p ActiveState,SubState,Type,User,MemoryCurrent
	[ "$(systemctl is-active perf-flight)" = active ] &&
		perf-flight ctl --status | tee /dev/stderr | grep blackbox &&
		perf-flight ctl --dump | tee /dev/stderr | grep 'blackbox.sample.*Z' &&
		[ "$(stat -c '%u %a' /run/perf)" = '0 755' ] &&
		ls /run/perf/perf-flight/blackbox.* &&
		perf-flight ctl --prometheus | grep '^perf_flight_dumps_total.* 1$' &&
		ls -l /var/lib/perf-flight/
}

unit_comes_back()
{
	local i pid
	pid=$(systemctl show -P MainPID perf-flight)
	kill -KILL "$pid"
	for ((i = 0; i < 200; i++)); do
		sleep 0.2
		[ "$(systemctl show -P MainPID perf-flight)" != "$pid" ] &&
			[ "$(systemctl is-active perf-flight)" = active ] && return
	done
	systemctl status perf-flight
	return 1
}

# A recorder that hangs does not feed the watchdog.
unit_is_watched()
{
	local i pid restarts dropin=/run/systemd/system/perf-flight.service.d
	mkdir -p $dropin
	printf '[Service]\nWatchdogSec=20\n' >$dropin/watchdog.conf
	systemctl daemon-reload
	systemctl restart perf-flight || return
	pid=$(systemctl show -P MainPID perf-flight)
	restarts=$(systemctl show -P NRestarts perf-flight)
	# While it runs, it does.
	sleep 45
	if [ "$(systemctl show -P MainPID perf-flight)" != "$pid" ]; then
		rm -r $dropin
		return 1
	fi
	kill -STOP "$pid"
	for ((i = 0; i < 600; i++)); do
		sleep 0.2
		[ "$(systemctl show -P NRestarts perf-flight)" = $((restarts + 1)) ] &&
			[ "$(systemctl is-active perf-flight)" = active ] && break
	done
	rm -r $dropin
	systemctl daemon-reload
	journalctl --no-pager -u perf-flight | tee /dev/stderr | grep -i 'watchdog timeout' &&
		[ "$(systemctl is-active perf-flight)" = active ] &&
		[ "$(systemctl show -P MainPID perf-flight)" != "$pid" ]
}

# SIGHUP ends neither the process nor what it has recorded: its messages are the journal's.
unit_reloads()
{
	local pid before
	pid=$(systemctl show -P MainPID perf-flight)
	sleep 3
	before=$(awk '{ print $1 }' /proc/uptime)
	systemctl reload perf-flight || return
	sleep 3
	[ "$(systemctl show -P MainPID perf-flight)" = "$pid" ] &&
		perf-flight ctl --dump | tee /dev/stderr | grep 'blackbox.sample.*Z' || return
	set -- /var/lib/perf-flight/blackbox.sample.*Z.json
	shift $(($# - 1))
	# CLOCK_MONOTONIC is that of /proc/uptime, as the machine was not suspended.
	sed -nE 's/^ *"(oldest|newest)": ([0-9.]+),.*/\1 \2/p' "$1" | tee /dev/stderr |
		awk -v t="$before" '$1 == "oldest" && $2 + 2 < t { n++ }
			$1 == "newest" && $2 > t { n++ }
			END { exit n != 2 }'
}

unit_stops()
{
	systemctl stop perf-flight && systemctl start perf-flight && systemctl stop perf-flight &&
		[ ! -e /run/perf/perf-flight ] &&
		[ "$(systemctl is-active perf-flight)" = inactive ] &&
		[ "$(systemctl show -P Result perf-flight)" = success ]
}

pages_and_words()
{
	man -w perf-flight-record && man perf-flight-ctl | grep -q 'persistent sessions' &&
		man perf-flight-record | grep -q 'FLIGHT RECORDER' &&
		bash -ic '. /usr/share/bash-completion/bash_completion
			_completion_loader perf-flight
			complete -p perf-flight'
}

# With dumps and a running unit: remove keeps the dumps, purge does not.
goes_while_it_runs()
{
	export DEBIAN_FRONTEND=noninteractive
	systemctl start perf-flight && apt-get -y remove perf-flight || return
	! pgrep -x perf && [ -n "$(ls /var/lib/private/perf-flight)" ] &&
		apt-get -y purge perf-flight && [ ! -e /var/lib/private/perf-flight ] &&
		[ ! -e /var/lib/perf-flight ] && [ ! -e /usr/lib/perf-flight ] &&
		[ ! -e /run/perf ] &&
		PATH=/usr/bin perf version
}

# Messages of the kernel; the log of the guest is short.
no_splat()
{
	! dmesg | grep -E 'cut here|BUG:|WARNING:|Oops|INFO: task|rcu: INFO'
}

guest()
{
	tap_run "the kernel is the package's" runs_the_package
	tap_run "a CPU that udev sees come online joins a session" new_cpu_joins
	tap_run "a session outlives its maker, and is read" session_outlives_its_maker
	tap_run "a recorder dumps, and the dump is read" recorder_dumps
	[ "$(cat /proc/sys/kernel/perf_event_paranoid)" -lt 3 ] ||
		tap_run "the unit tells that perf_event_paranoid is 3" unit_wants_paranoid_2
	tap_run "the unit starts, and answers" unit_starts
	tap_run "the unit comes back after SIGKILL" unit_comes_back
	tap_run "the unit comes back when its watchdog bites" unit_is_watched
	tap_run "the unit reloads, and keeps what it has" unit_reloads
	tap_run "the unit stops" unit_stops
	tap_run "man pages and completion" pages_and_words
	tap_run "perf-flight is removed while it runs" goes_while_it_runs
	tap_run "no splat" no_splat
	tap_end
}

full()
{
	if [ "$(id -u)" != 0 ]; then
		echo "1..0 # SKIP making a Debian takes root"
		exit 0
	fi
	if ! command -v debootstrap >/dev/null; then
		echo "1..0 # SKIP debootstrap is not installed: apt-get install debootstrap"
		exit 0
	fi
	tap_run "a Debian $SUITE" make_root
	tap_run "linux-perf and the dependencies" install_others
	tap_run "the packages install" install_ours
	tap_run "both perfs are there" both_perfs_run
	tap_run "a disk" make_disk
	tap_run "the package's kernel boots from it, and powers off" boot
	if grep -q '^1\.\.' "$WORK/verdict"; then
		sed 's/^ok /    ok /; s/^not ok /    not ok /' "$WORK/verdict"
		tap_run "what was tried in it" guest_agrees
	else
		tail -n 30 "$WORK/console" | sed 's/^/# /'
		tap_run "what was tried in it" false
	fi
	tap_run "the packages leave no file" removes_cleanly
}

guest_agrees()
{
	! grep '^not ok' "$WORK/verdict"
}

if [ "${1-}" = --guest ]; then
	guest
	exit
fi
VM=$TOP/tools/testing/vm
mkdir -p "$WORK"
if [ -z "${NO_BUILD:-}" ]; then
	"$VM/deb.sh" "$([ "${1-}" = --quick ] && echo perf || echo all)" || exit 1
fi
tap_run "the perf package tells what it is" tells_what_it_is
tap_run "it holds man pages, completion, unit and scripts" is_complete
tap_run "it shares no file with linux-perf" has_no_file_of_linux_perf
tap_run "it runs" runs_unpacked
tap_run "its examples build" examples_build
[ "${1-}" = --quick ] || full
tap_end
