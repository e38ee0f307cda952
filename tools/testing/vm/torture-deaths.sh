#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A machine that dies DEATHS times, in all ways in which it can, at random moments, and what the
# next boot recovers each time. Every second time, sessions are made, claimed, frozen and
# thawed meanwhile, notes are stored, and images of earlier boots are read (blackbox_churn).
#
# At each death QEMU pauses the machine and saves the image. The next boot finds just these bytes.
#
# usage: torture-deaths.sh		on the host
#	 torture-deaths.sh guest	in the guest
#
# DEATHS=100 SEED=1: how many, and where the random numbers begin. KINDS: the ways, of those in
# death(); each of them comes once before one is drawn again. VARIANT=debug has LKDTM, and no
# detector of lockups.
set -uo pipefail
# shellcheck source=tools/testing/vm/test-blackbox.sh
. "${BASH_SOURCE[0]%/*}/test-blackbox.sh"

DEATHS=${DEATHS:-100}
SEED=${SEED:-1}
VARIANT=${VARIANT:-patched}
# With LKDTM: a BUG(), and a panic in an interrupt
if [ "$VARIANT" = debug ]; then
	KINDS=${KINDS:-panic nmi triple reset oops bug irq}
else
	KINDS=${KINDS:-panic nmi triple reset lockup oops}
fi
BOOTS=$((DEATHS + 1))
PROVOKE=/sys/kernel/debug/provoke-crash
# shellcheck disable=SC2054 # the commas are the parameters'
PARAMS=(
	reserve_mem=8M:4096:box
	perf_persistent=box:raw_syscalls:sys_enter,task:task_rename,printk:console:64K@box
	unknown_nmi_panic
	nokaslr
	deaths="$DEATHS"
	seed="$SEED"
	kinds="${KINDS// /,}"
)

# param NAME: what the host has put on the command line of the guest
param()
{
	sed -nE "s/.* $1=([^ ]*).*/\1/p" /proc/cmdline
}

# kind NUMBER: how boot NUMBER ends
kind()
{
	local kinds i j swap
	read -ra kinds <<<"$KINDS"
	RANDOM=$((SEED * 1000 + $1))
	if (($1 > ${#kinds[@]})); then
		echo "${kinds[RANDOM % ${#kinds[@]}]}"
		return
	fi
	# At first all of them, in an order that depends on SEED alone
	RANDOM=$((SEED * 1000))
	for ((i = ${#kinds[@]} - 1; i > 0; i--)); do
		j=$((RANDOM % (i + 1)))
		swap=${kinds[i]} kinds[i]=${kinds[j]} kinds[j]=$swap
	done
	echo "${kinds[$1 - 1]}"
}

# The only image of a death that was not released
dead()
{
	perf ctl -l --json | sed -nE 's/.*"kind": "image", "name": "([^"]*)".*"death": true.*/\1/p'
}

# The session from boot is complete, whatever others were doing. Others are consistent: the
# reader fails for a record that is torn, out of order or of no event.
is_whole()
{
	read_image "$1" "$2" || return 1
	if [ "$(grep -cE '^event .* session 0 ' /tmp/text)" != 6 ] ||
	   ! grep -qx 'session 0 box' /tmp/text ||
	   ! grep -qE "^found [1-9][0-9]* marker-$2-" /tmp/text ||
	   ! grep -qE "^found [1-9][0-9]* message-$2-" /tmp/text; then
		cat /tmp/text
		return 1
	fi
}

# fits KIND: state and reason of the image are those of such a death
fits()
{
	case $1 in
	triple | reset)
		grep -qx 'state live' /tmp/text && tells_no_death
		;;
	*)
		# The reason of an oops is what the oops was about.
		declare -A reason=([panic]='sysrq triggered crash' [nmi]='NMI'
			[oops]='Fatal exception' [bug]='Fatal exception'
			[irq]='dumptest|Fatal exception in interrupt' [lockup]='Hard LOCKUP')
		grep -qx 'state dead' /tmp/text && ends_with_death time &&
			! grep -E '^state of .* paused 0' /tmp/text &&
			grep -qE "^death kind 1 .* reason .*(${reason[$1]})" /tmp/text &&
			grep -qE '^task [0-9]+ [0-9]+ load$' /tmp/text
		;;
	esac || {
		cat /tmp/text
		return 1
	}
}

# Each record becomes a sample, and the image is released. perf would not do that: what
# blackbox_churn notes is no record.
recovers_all()
{
	local nr
	perf data recover -q -f --session box -o /tmp/box.data --last "$1" || return 1
	"$BUILD/base/bin/perf" script -i /tmp/box.data -F comm,event >/tmp/samples \
		2>/tmp/complaints || { cat /tmp/complaints; return 1; }
	nr=$(awk '/^event .* session 0 / { own[$8] = 1 }
		  /^buffer/ && own[$2] { n += $6 }
		  END { print n }' /tmp/text)
	echo "$nr records, $(wc -l </tmp/samples) samples"
	[ "$nr" -gt 1000 ] && [ "$(wc -l </tmp/samples)" = "$nr" ] &&
		grep -q '^ *load .*raw_syscalls:sys_enter' /tmp/samples &&
		echo 1 >"$LAST/$1.release"
}

# The boot before, number $1, has died of $2.
survives()
{
	local image
	image=$(dead)
	echo "$image"
	[ "$(wc -w <<<"$image")" = 1 ] && is_whole "$image" "$1" && fits "$2" || return 1
	is_same "$image" "$OUT/memory" || return 1
	recovers_all "$image" && [ -z "$(dead)" ]
}

# A CPU that takes no interrupts, seen by the other one
lock_up()
{
	insmod "$BUILD/patched/test_modules/perf_stall.ko"
	sysctl -qw kernel.soft_watchdog=0 kernel.nmi_watchdog=1 kernel.watchdog_thresh=1 \
		kernel.hardlockup_panic=1 kernel.watchdog=1
	taskset 2 sh -c 'echo irqs 20000 >/dev/perf_stall'
}

boot()
{
	local died
	if [ "$1" != 1 ]; then
		died=$(kind $(($1 - 1)))
		tap_run "death $(($1 - 1)), $died: recovered whole" survives $(($1 - 1)) "$died"
		tap_run "boot $1: is recording" is_recording
	fi
	# Without a session there is nothing to die for.
	if [ ! -e "$DEVICE/sessions/box" ]; then
		ask stop
		echo b >/proc/sysrq-trigger
	fi
	[ "$1" != $BOOTS ] || ask stop
}

death()
{
	watch_death
	start_load "$1"
	perf data note -q box
	if (($1 % 2)); then
		perf record -q -P noted --reserve box -m 16K -e task:task_rename -C 0
		"$SELFTESTS/blackbox_churn" box noted >/tmp/churn 2>&1 &
		eventually 20 grep -q churning /tmp/churn
	fi
	RANDOM=$((SEED * 2000 + $1))
	sleep "0.$((RANDOM % 90 + 10))"
	if grep 'not ok\|Bail' /tmp/churn 2>/dev/null; then
		ask stop
		echo b >/proc/sysrq-trigger
	fi
	case $(kind "$1") in
	panic) echo c >/proc/sysrq-trigger ;;
	nmi) ask nmi ;;
	triple) echo b >/proc/sysrq-trigger ;;
	reset) ask reset ;;
	lockup) lock_up ;;
	oops)
		insmod "$BUILD/$VARIANT/test_modules/perf_stall.ko"
		oops sh -c 'echo oops 0 >/dev/perf_stall'
		;;
	bug) oops sh -c "echo BUG >$PROVOKE/DIRECT" ;;
	# Of a device: there is no do_IRQ() on x86 any more, which INT_HARDWARE_ENTRY probes.
	irq) echo PANIC >"$PROVOKE"/INT_HW_IRQ_EN ;;
	esac
	sleep 600
}

if [ "${1-}" = guest ]; then
	DEATHS=$(param deaths)
	SEED=$(param seed)
	KINDS=$(param kinds | tr , ' ')
	BOOTS=$((DEATHS + 1))
	for ((i = 1; i <= BOOTS; i++)); do
		eval "boot_$i() { boot $i; }"
		[ $i = $BOOTS ] || eval "death_$i() { death $i; }"
	done
	guest
else
	OUT=${OUT:-$BUILD/out/deaths}
	[ "$VARIANT" = debug ] && SECS=300 || SECS=120
	export OUT TIMEOUT=${TIMEOUT:-$((300 + SECS * DEATHS))}
	# What the kernel reports of the deaths that are asked for.
	ALLOW='^Oops: |^[Kk]ernel BUG at lkdtm'
	ALLOW+='|^BUG: kernel NULL pointer dereference, address: 0*8$'
	export ALLOW
	host
fi
