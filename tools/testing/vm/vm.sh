#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Boot a variant in QEMU, run a command in it as root, exit with its status.
#
# usage: CMD='...' vm.sh       ("make vm CMD='...'" does the same)
#   VARIANT=patched|base|debug   the kernel, and the perf that comes first on PATH; arm64:
#                                an initramfs alone, CMD is a program a line: test-arm64.sh
#   SMP=2 MEM=2G                 CPUs and memory; for debug, 1536M
#   ACCEL=single|multi|kvm       TCG on one thread (default), on a thread per CPU (with
#                                poke_again.ko in the guest), KVM
#   ICOUNT=1                     guest time counts instructions
#   ICOUNT_SHIFT=0               an instruction takes 2^N ns. With more of them, a load that
#                                lasts for some seconds has fewer instructions to emulate
#   ASLR=1                       programs start at random addresses. QEMU then translates them
#                                at each start, and a short command takes 2 to 4 times as long
#   KASLR=1                      the kernel is at a random address, in the variants patched and
#                                base_debuginfo
#   FAR=1                        no file of the host's is in the initramfs, which is small then
#   APPEND='...'                 more of the kernel's command line
#   EXPECT='...'                 what the kernel must say although it is a splat: an extended
#                                regular expression in each line
#   ALLOW='...'                  what it may say, likewise: one extended regular expression
#   TIMEOUT=600                  seconds until the machine is stopped
#   QEMU_EXTRA='...'             more of QEMU's own options
#
# In the guest the host's file system is readable at the same paths, /tmp is empty
# and writable, $OUT (build/out) is shared with the host. Exit status: the
# command's; 99 when the kernel log had a splat or the machine died; 124 when
# the time ran out.
set -euo pipefail
# shellcheck source=tools/testing/vm/lib.sh
. "${BASH_SOURCE[0]%/*}/lib.sh"

CMD=${CMD:-bash}
VARIANT=${VARIANT:-patched}
SMP=${SMP:-2}
ACCEL=${ACCEL:-single}
ICOUNT=${ICOUNT:-}
ICOUNT_SHIFT=${ICOUNT_SHIFT:-0}
ASLR=${ASLR:-}
KASLR=${KASLR:-}
FAR=${FAR:-}
APPEND=${APPEND:-}
EXPECT=${EXPECT:-}
ALLOW=${ALLOW:-}
TIMEOUT=${TIMEOUT:-600}
OUT=${OUT:-$BUILD/out}
# At the end, kmemleak scans KASAN's shadow, an eighth of the memory, twice.
if [ "$VARIANT" = debug ]; then
	MEM=${MEM:-1536M}
else
	MEM=${MEM:-2G}
fi
KERNEL=$BUILD/$VARIANT/bzImage
QEMU="qemu-system-x86_64"
if [ "$VARIANT" = arm64 ]; then
	KERNEL=$BUILD/arm64/Image
	QEMU="qemu-system-aarch64"
fi
# What init loads when ACCEL=multi, and why: see poke_again.c.
POKE_AGAIN=$BUILD/$VARIANT/poke_again/poke_again.ko
# Copies of the host's files, for the guest's memory: see init.c
NEAR=$BUILD/vm/near.cpio
GUEST_PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
COMMAND_LINE="console=ttyS0 panic=-1 oops=panic quiet log_buf_len=4M random.trust_cpu=on nowatchdog"
qemu=
DIR=

# shellcheck disable=SC2317 # called by the trap
clean_up()
{
	trap - EXIT
	[ -z "$qemu" ] || kill -KILL "$qemu" 2>/dev/null || true
	[ -z "$DIR" ] || rm -rf "$DIR"
}

accel_options()
{
	case $ACCEL in
	single) echo "tcg,thread=single" ;;
	multi) echo "tcg,thread=multi" ;;
	kvm) echo "kvm" ;;
	*) die "ACCEL=$ACCEL: there are single, multi and kvm" ;;
	esac
}

# KVM may be there and yet not boot (nested, or a CPU without what we need).
probe_kvm()
{
	local state=$BUILD/vm/kvm-probe
	if [ ! -f "$state" ] || [ "$BUILD/$VARIANT/bzImage" -nt "$state" ]; then
		mkdir -p "${state%/*}"
		if [ -w /dev/kvm ] && CMD=true PROBE=1 ACCEL=kvm ICOUNT='' TIMEOUT=30 \
		   "${BASH_SOURCE[0]}" >/dev/null 2>&1; then
			echo boots >"$state"
		else
			echo fails >"$state"
		fi
	fi
	[ "$(cat "$state")" = boots ]
}

# Python executes these files at each start. What they import may take half a second.
files_to_hide()
{
	local file
	for file in /usr/lib/python3/dist-packages/*.pth \
		    /usr/local/lib/python3*/dist-packages/*.pth; do
		[[ ! -f $file || -L $file ]] || echo "$file"
	done
}

# What the host installs or removes is not in the copies of its files.
near_is_new()
{
	[ -z "$FAR" ] && [ "$VARIANT" != arm64 ] && [ "$NEAR" -nt /etc/ld.so.cache ] &&
		[ "$NEAR" -nt /var/lib/dpkg/status ]
}

# The locale is C: programs open the files of another one at each start, which takes a grep half
# of its time.
make_initrd()
{
	local root=$DIR/root
	mkdir -p "$root"
	if [ "$VARIANT" = arm64 ]; then
		cp -a "$BUILD/arm64/root/." "$root"
	else
		install -m 755 "$BUILD/vm/init" "$root/init"
	fi
	[ "$ACCEL" != multi ] || [ "$VARIANT" = arm64 ] || cp "$POKE_AGAIN" "$root/poke_again.ko"
	printf '%s\n' "$CMD" >"$root/cmd"
	cat >"$root/job" <<-END
		PATH=$BUILD/$VARIANT/bin:$GUEST_PATH
		HOME=/root
		TERM=${TERM:-dumb}
		LANG=C
		TOP=$TOP
		BASE=$BASE
		BUILD=$BUILD
		VARIANT=$VARIANT
		ACCEL=$ACCEL
		SMP=$SMP
		TEST_MACHINE=1
		BASE_PERF=$BUILD/base/bin/perf
	END
	[ "$VARIANT" = arm64 ] || printf 'OUT=%s\n' "$OUT" >>"$root/job"
	[ "$VARIANT" = arm64 ] || files_to_hide >"$root/empty"
	local v
	for v in ${PASS_ENV:-}; do
		printf '%s=%s\n' "$v" "${!v-}" >>"$root/job"
	done
	(cd "$root" && find . | cpio -o -H newc --quiet -R 0:0) >"$DIR/initrd"
	! near_is_new || cat "$NEAR" >>"$DIR/initrd"
}

# TCG passes the host's time stamp counter on, unless it counts instructions. The kernel is not
# to check the counter against other clocks: a busy host makes that check fail.
clock_options()
{
	local khz
	[[ -z $ICOUNT && $ACCEL != kvm ]] || return 0
	khz=$("$BUILD/vm/tsc-khz" 2>/dev/null) || return 0
	echo "tsc_early_khz=$khz tsc=reliable"
}

# While Linux 7 identifies its first CPU anew, interrupts are on and no feature is known. KASAN
# does not know the addresses of five levels of pages then.
levels()
{
	case $VARIANT in
	debug | kcsan) echo ,la57=off ;;
	esac
}

# TCG emulates "rep movsb" byte by byte, and the kernel copies without it if it is slow. Where
# instructions are counted for their number, the CPU is as it comes.
cpu()
{
	if [[ $ACCEL = kvm || ( -n $ICOUNT && $ICOUNT_SHIFT = 0 ) ]]; then
		echo max
	else
		echo "max,erms=off,fsrm=off$(levels)"
	fi
}

# The kernel has no ACPI. It takes its CPUs from the MP table, where SeaBIOS lists one for each
# socket. It calibrates the local APIC timer by the ACPI PM timer, which SeaBIOS puts at port
# 0x608; without it, it verifies the APIC timer by counting ticks, and disables it when a busy
# host delays them. It would check the other timer in the same way (no_timer_check). The
# machine cannot be powered off: it restarts by a triple fault, and QEMU exits.
set_machine()
{
	local shared=security_model=none,multidevs=remap
	if [ "$VARIANT" = arm64 ]; then
		MACHINE=(-machine "virt,gic-version=3" -cpu "max,pauth-impdef=on" -smp "$SMP")
		COMMAND_LINE=${COMMAND_LINE/ttyS0/ttyAMA0}
		return
	fi
	case $VARIANT in
	patched|base_debuginfo) [ -n "$KASLR" ] || COMMAND_LINE+=" nokaslr" ;;
	esac
	MACHINE=(-machine pc -cpu "$(cpu)" -smp "$SMP,sockets=$SMP"
		-virtfs "local,path=/,mount_tag=host,$shared,readonly=on"
		-virtfs "local,path=$OUT,mount_tag=out,$shared")
	COMMAND_LINE+=" pmtmr=0x608 no_timer_check reboot=t $(clock_options)"
	[ -n "$ASLR" ] || COMMAND_LINE+=" norandmaps"
}

start_qemu()
{
	local accel=(-accel "$(accel_options)") stdin
	# QEMU closes the output port at the end of its stdin: give it one without end.
	[ -p "$DIR/stdin" ] || mkfifo "$DIR/stdin"
	exec {stdin}<>"$DIR/stdin"
	[ -z "$ICOUNT" ] || accel+=(-icount "shift=$ICOUNT_SHIFT,sleep=off")
	# shellcheck disable=SC2086 # QEMU_EXTRA is a list of words
	setpriv --pdeathsig KILL "$QEMU" "${MACHINE[@]}" "${accel[@]}" \
		-m "$MEM" \
		-nodefaults -no-user-config -no-reboot -display none -monitor none \
		-serial "file:$CONSOLE" \
		-device virtio-serial-pci \
		-chardev "file,id=verdict,path=$DIR/verdict" \
		-device virtserialport,chardev=verdict,name=verdict \
		-chardev stdio,id=output,signal=off \
		-device virtserialport,chardev=output,name=output \
		-device virtio-rng-pci \
		-kernel "$KERNEL" -initrd "$DIR/initrd" \
		-append "$COMMAND_LINE $APPEND" \
		${QEMU_EXTRA:-} <&"$stdin" 2>"$DIR/qemu.err" &
	qemu=$!
}

# Wait for QEMU's end, or stop it; sets $timed_out. Not by SECONDS, which follows the wall
# clock when that is set.
wait_qemu()
{
	local end now
	read -r now _ </proc/uptime
	end=$((${now%.*} + TIMEOUT))
	timed_out=
	while kill -0 "$qemu" 2>/dev/null; do
		read -r now _ </proc/uptime
		if ((${now%.*} >= end)); then
			timed_out=1
			kill -KILL "$qemu" 2>/dev/null || true
			break
		fi
		sleep 0.2
	done
	wait "$qemu" 2>/dev/null || true
	qemu=
}

# How the kernel died, if it told.
last_words()
{
	local what="Oops|BUG|kernel BUG|Kernel panic|general protection"
	tr -d '\0\r' <"$CONSOLE" | sed -nE "s/^\[[^]]*\] (($what)[: ].*)/: \1/p" | head -n1
}

# Before init loads poke_again.ko, the fault of QEMU that this works around can end the boot.
# Nothing of the test has run by then.
dies_of_old_text()
{
	[ "$ACCEL" = multi ] && [ -z "$timed_out" ] && ! grep -qxa boots "$DIR/verdict" &&
		[[ $(last_words) == ': Oops: int3'* ]]
}

# A guest that the emulator lets die in its boot is started anew, twice at most.
run_qemu()
{
	local i
	for i in 1 2 3; do
		: >"$DIR/verdict"
		start_qemu
		wait_qemu
		[ "$i" -lt 3 ] && dies_of_old_text || return 0
		say "QEMU ran old text in the boot ($CONSOLE): it starts again"
		mv "$CONSOLE" "${CONSOLE%.log}-$i.log"
	done
}

show_console()
{
	say "the console's end ($CONSOLE):"
	tail -n "${CONSOLE_LINES:-40}" "$CONSOLE" >&2
}

verdict()
{
	local splats status missing='' pattern
	splats=$(grep -a '^splat ' "$DIR/verdict" | cut -c7- || true)
	status=$(sed -n 's/^exit //p' "$DIR/verdict" | tail -n1)
	while IFS='' read -r pattern; do
		# An empty one would match all.
		[ -n "$pattern" ] || continue
		grep -qaE -e "$pattern" <<<"$splats" || missing=$pattern
		splats=$(grep -avE -e "$pattern" <<<"$splats" || true)
	done <<<"$EXPECT"
	[ -z "$ALLOW" ] || splats=$(grep -avE -e "$ALLOW" <<<"$splats" || true)
	if [ -n "$splats" ]; then
		show_console
		say "kernel splat on $VARIANT: $(head -n1 <<<"$splats")"
		return 99
	fi
	if grep -qa '^failed ' "$DIR/verdict"; then
		say "init $(grep -am1 '^failed ' "$DIR/verdict")"
		return 98
	fi
	if [ -n "$timed_out" ]; then
		show_console
		say "stopped after $TIMEOUT s without an end (TIMEOUT=$TIMEOUT)"
		return 124
	fi
	if ! grep -qxa 'done' "$DIR/verdict"; then
		cat "$DIR/qemu.err" >&2
		show_console
		say "the machine died before it could say how the command ended$(last_words)"
		return 99
	fi
	if [ -n "$missing" ]; then
		show_console
		say "the kernel did not say what was expected: $missing"
		return 99
	fi
	return "$status"
}

# The guest wants -cpu max and 9p: as Debian 12 has them, and later.
check_qemu()
{
	local version
	command -v "$QEMU" >/dev/null || die "$QEMU is missing: run 'make deps'"
	version=$("$QEMU" --version | sed -nE '1s/.*version ([0-9]+)\..*/\1/p')
	((${version:-0} >= 7)) ||
		die "QEMU ${version:-of an unknown version} is too old: 7.2 (Debian 12) or later" \
		    "is needed, first in PATH"
}

main()
{
	check_qemu
	[[ -f $KERNEL && ( $VARIANT = arm64 || -x $BUILD/vm/init ) ]] ||
		die "variant $VARIANT is not built: make ${KERNEL#"$TOP/"}"
	[ -z "$ICOUNT" ] || [ "$ACCEL" = single ] || die "ICOUNT=1 needs ACCEL=single"
	if [ "$ACCEL" = kvm ] && [ -z "${PROBE:-}" ] && ! probe_kvm; then
		say "KVM does not boot here: using ACCEL=multi"
		ACCEL=multi
	fi
	[ "$ACCEL" != multi ] || [ "$VARIANT" = arm64 ] || [ -f "$POKE_AGAIN" ] ||
		die "$POKE_AGAIN is missing: make ${KERNEL#"$TOP/"}"
	set_machine
	mkdir -p "$OUT" "$BUILD/vm"
	trap clean_up EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM HUP
	DIR=$(mktemp -d "$BUILD/vm/run.XXXXXX")
	CONSOLE=${CONSOLE:-$BUILD/vm/console-$VARIANT-${DIR##*.}.log}
	ln -sfn "$CONSOLE" "$BUILD/vm/console-$VARIANT.log"
	make_initrd
	run_qemu
	local rc=0
	verdict || rc=$?
	# The last hundred console logs are kept.
	find "$BUILD/vm" -name 'console-*-*.log' -printf '%T@ %p\n' | sort -rn |
		tail -n +101 | cut -d' ' -f2- | xargs -r rm -f
	exit $rc
}

main "$@"
