#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Follow the README like a new user, in bare Debian roots created by debootstrap, and cause
# each error that can occur on the way. This is not part of any make target: it needs one to
# two hours, root, the network and 20 GB. Prints TAP.
#
# usage: first-contact.sh [bookworm|trixie]... [errors|run|test]...
#   default: both suites, 'errors' and 'run'; 'test' runs 'make test' (with ONLY=PATTERN
#   part of it), in the root of 'run' if that comes before, otherwise with empty caches
#
# The committed tree is cloned into the root. MIRROR selects another mirror.
# shellcheck disable=SC2016 # much here is for the shell in the root
set -uo pipefail
# shellcheck source=tools/testing/vm/lib.sh
. "${BASH_SOURCE[0]%/*}/lib.sh"
# shellcheck source=tools/testing/vm/tap.sh
. "${BASH_SOURCE[0]%/*}/tap.sh"
# shellcheck source=tools/testing/vm/mirror.sh
. "${BASH_SOURCE[0]%/*}/mirror.sh"

MIRROR=${MIRROR:-$(debian_mirror)}
LIMIT=${LIMIT:-7200}
ROOTS=$BUILD/roots
export LC_ALL=C PATH=$PATH:/usr/sbin:/sbin

# A minimal base system of debootstrap; created once.
make_bare()
{
	local suite=$1 tar=$ROOTS/bare-$1.tar
	unmount
	if [ ! -s "$tar" ]; then
		rm -rf --one-file-system "$ROOT"
		mkdir -p "$ROOTS"
		debootstrap --variant=minbase "$suite" "$ROOT" "$MIRROR" || return
		tar -C "$ROOT" --numeric-owner -cf "$tar.new" . && mv "$tar.new" "$tar" || return
	fi
	rm -rf --one-file-system "$ROOT"
	mkdir -p "$ROOT"
	tar -C "$ROOT" --numeric-owner -xf "$tar" || return
	cp /etc/resolv.conf "$ROOT/etc"
	mkdir -p "$ROOT/home/new"
	git clone -q "$TOP" "$ROOT/home/new/tree" || return
	mount -t proc none "$ROOT/proc" && mount -t sysfs -o ro none "$ROOT/sys" &&
		mount --rbind /dev "$ROOT/dev" && mount --make-rslave "$ROOT/dev" &&
		mount -t tmpfs none "$ROOT/tmp"
}

unmount()
{
	umount -R "$ROOT/proc" "$ROOT/sys" "$ROOT/dev" "$ROOT/tmp" 2>/dev/null || true
}

# try COMMAND: run a command in the root, in the tree, in a shell of root
try()
{
	timeout -k 10 "$LIMIT" chroot "$ROOT" env -i HOME=/root TERM=dumb \
		PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
		bash -c "cd /home/new/tree && $1" 2>&1 </dev/null
}

# says PATTERN COMMAND: the command must fail with a message that says what to do
says()
{
	local pattern=$1 text
	shift
	if text=$(try "$*"); then
		echo "it did not fail: $text"
		return 1
	fi
	grep -E -e "$pattern" <<<"$text" || { echo "no '$pattern' in: $text"; return 1; }
}

# The commands of the README.
prepare()
{
	local line
	awk '/^#/ { on = /What it needs$/ } on && sub(/^    # /, "")' "$TOP/README.md" \
		>"$ROOTS/prepare"
	while read -r line; do
		try "$line" || return
	done <"$ROOTS/prepare"
}

no_root()
{
	says 'neither root nor sudo.*as root, run apt-get install' \
		'chmod -R a+rwX . && setpriv --reuid 1000 --regid 1000 --clear-groups \
			tools/testing/vm/deps.sh'
}

no_network()
{
	says 'check the network' 'unshare -n tools/testing/vm/deps.sh'
}

wrong_suite()
{
	says 'needs Debian 12 or 13, with' 'mkdir -p /tmp/lists && cd /home/new/tree &&
		mv /etc/apt/sources.list /etc/apt/sources.list.away &&
		mkdir -p /etc/apt/away && mv /etc/apt/sources.list.d/* /etc/apt/away/ 2>/dev/null
		rm -rf /var/lib/apt/lists/*; : >/etc/apt/sources.list
		tools/testing/vm/deps.sh; rc=$?
		mv /etc/apt/sources.list.away /etc/apt/sources.list
		mv /etc/apt/away/* /etc/apt/sources.list.d/ 2>/dev/null; exit $rc'
}

not_debian()
{
	says 'this is not Debian' 'mkdir /tmp/bin; for p in bash cat id dirname tr; do
		ln -sf /bin/$p /tmp/bin/$p; done; PATH=/tmp/bin bash tools/testing/vm/deps.sh'
}

missing_package()
{
	says "is missing: run 'make deps'" 'tools/testing/vm/build.sh --stage-only'
}

no_disk_space()
{
	try 'mkdir -p build && mount -t tmpfs -o size=100M tmpfs build' || return
	says 'are free for .*make room' 'mkdir -p /tmp/p /usr/src
		for p in make gcc flex bison bc cpio patch perl pahole; do
			printf "#!/bin/sh\n" >/tmp/p/$p; chmod +x /tmp/p/$p; done
		: >/usr/src/linux-source-6.12.tar.xz; PATH=$PATH:/tmp/p tools/testing/vm/build.sh'
	local rc=$?
	try 'umount build; rm -rf build /tmp/p /usr/src/linux-source-6.12.tar.xz'
	return $rc
}

disk_gets_full()
{
	says 'is full: make room' '. tools/testing/vm/lib.sh
		mkdir -p build/full && mount -t tmpfs -o size=64K tmpfs build/full
		run_logged fill /tmp/fill.log dd if=/dev/zero of=build/full/f bs=1M count=1'
	local rc=$?
	try 'umount build/full; rm -rf build'
	return $rc
}

old_qemu()
{
	says 'QEMU 5 is too old' 'mkdir -p /tmp/q
		printf "#!/bin/sh\necho QEMU emulator version 5.2.0\n" >/tmp/q/qemu-system-x86_64
		chmod +x /tmp/q/qemu-system-x86_64; PATH=/tmp/q:$PATH tools/testing/vm/vm.sh'
}

no_qemu()
{
	says "qemu-system-x86_64 is missing: run 'make deps'" tools/testing/vm/vm.sh
}

not_built()
{
	says 'is not built: make build' 'mkdir -p /tmp/q
		printf "#!/bin/sh\necho QEMU emulator version 7.2.0\n" >/tmp/q/qemu-system-x86_64
		chmod +x /tmp/q/qemu-system-x86_64; PATH=/tmp/q:$PATH tools/testing/vm/vm.sh'
}

errors()
{
	tap_run "$1: no root" no_root
	tap_run "$1: no network" no_network
	tap_run "$1: wrong suite" wrong_suite
	tap_run "$1: not Debian" not_debian
	tap_run "$1: missing package" missing_package
	tap_run "$1: no space at the start" no_disk_space
	tap_run "$1: no space on the way" disk_gets_full
	tap_run "$1: old QEMU" old_qemu
	tap_run "$1: no QEMU" no_qemu
	tap_run "$1: nothing built" not_built
}

make_run()
{
	try 'make run' | tee "$ROOTS/$1.run" | tail -n 40
	grep -q '^== Report' "$ROOTS/$1.run"
}

make_test()
{
	local begin=$SECONDS

	try "make test ${ONLY:+ONLY='$ONLY'}" | tee "$ROOTS/$1.test" | tail -n 40
	echo "make test took $((SECONDS - begin)) s"
	tail -n1 "$ROOTS/$1.test" | grep -q ' 0 failed'
}

main()
{
	local suites=() steps=() arg suite
	for arg; do
		case $arg in
		bookworm|trixie) suites+=("$arg") ;;
		errors|run|test) steps+=("$arg") ;;
		*) die "no '$arg': see the head of this file" ;;
		esac
	done
	[ ${#suites[@]} -gt 0 ] || suites=(bookworm trixie)
	[ ${#steps[@]} -gt 0 ] || steps=(errors run)
	[ "$(id -u)" = 0 ] || die "debootstrap and chroot take root: run this with sudo"
	command -v debootstrap >/dev/null || die "debootstrap is missing: run 'make deps'"
	trap unmount EXIT
	for suite in "${suites[@]}"; do
		# Checks run in subshells.
		ROOT=$ROOTS/first-$suite
		tap_run "a bare $suite" make_bare "$suite"
		for arg in "${steps[@]}"; do
			case $arg in
			errors) errors "$suite" ;;
			run)
				tap_run "$suite: what README wants first" prepare
				tap_run "$suite: make run" make_run "$suite"
				;;
			test)
				tap_run "$suite: what README wants first" prepare
				tap_run "$suite: make test" make_test "$suite"
				;;
			esac
		done
		unmount
	done
	tap_end
}

ROOT=$ROOTS/none
main "$@"
