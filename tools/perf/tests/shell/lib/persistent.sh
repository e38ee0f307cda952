# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# What the tests of persistent sessions share. Sourced, not run.
#
# Each check is a function that fails by its status; it is counted, and told as
# a TAP line, so that the scripts serve 'perf test' and other harnesses alike.

PERSISTENT_SYSFS=/sys/bus/event_source/devices/persistent
# A perf that knows nothing of persistent sessions, to open what we write.
BASE_PERF=${BASE_PERF:-perf}

persistent_n=0
persistent_bad=0

# A pipe into which nobody writes
exec {PERSISTENT_NEVER}<> <(:)

# pause SECONDS: without a process, which takes as long as many a pause
pause()
{
	read -rt "$1" -u "$PERSISTENT_NEVER" _ || true
}

# other_perf script|report [OPTION...]: a perf that knows nothing of what wrote the file reads
# it, without symbols of the kernel. To read those takes it half a billion instructions each time.
other_perf()
{
	"$BASE_PERF" "$1" --kallsyms /dev/null "${@:2}"
}

# For how many seconds the CPUs were busy since the machine was started, all together
cpu_seconds()
{
	local user nice system irq softirq _

	read -r _ user nice system _ _ irq softirq _ </proc/stat
	echo $(((user + nice + system + irq + softirq) / 100))
}

# check NAME FUNCTION...: in a subshell, with -e. What takes long is told. CHECK_ONLY: the
# FUNCTION that is tried alone, or a word behind it.
check()
{
	local name=$1 rc=0 text began=$SECONDS busy

	shift
	[ -z "${CHECK_ONLY-}" ] || [[ " $* " == *" $CHECK_ONLY "* ]] || return 0
	busy=$(cpu_seconds)
	persistent_n=$((persistent_n + 1))
	set +e
	text=$(set -eE; trap 'echo "line $LINENO: $BASH_COMMAND" >&2' ERR; "$@" 2>&1 </dev/null)
	rc=$?
	set -e
	if [ $rc = 0 ]; then
		echo "ok $persistent_n $name"
	else
		persistent_bad=$((persistent_bad + 1))
		printf '# %s\n' "${text//$'\n'/$'\n'# }"
		echo "not ok $persistent_n $name"
	fi
	[ $((SECONDS - began)) -lt 5 ] ||
		echo "# took $((SECONDS - began)) s, $(($(cpu_seconds) - busy)) s of the CPUs"
}

# leave_out NAME REASON: a check that cannot be made here
leave_out()
{
	persistent_n=$((persistent_n + 1))
	echo "ok $persistent_n $1 # SKIP $2"
}

supported()
{
	[ "$(cat $PERSISTENT_SYSFS/type 2>/dev/null)" = 6 ]
}

sessions()
{
	ls $PERSISTENT_SYSFS/sessions
}

# shellcheck disable=SC2317 # called by the trap
persistent_cleanup()
{
	trap - EXIT
	sessions 2>/dev/null | xargs -r perf ctl -d >/dev/null 2>&1 || true
	rm -rf "$TMP"
}

# persistent_begin: root, a kernel that has them, and none of anybody else's
persistent_begin()
{
	if [ "$(id -u)" != 0 ]; then
		echo "1..0 # SKIP persistent sessions of all CPUs are made by root"
		exit 2
	fi
	if ! supported; then
		echo "1..0 # SKIP this kernel has no persistent events"
		exit 2
	fi
	if [ -n "$(sessions)" ]; then
		echo "1..0 # SKIP somebody's sessions are in use: $(sessions)"
		exit 2
	fi
	TMP=$(mktemp -d "${TMPDIR:-/tmp}/persistent.XXXXXX")
	# Build-ids are cached there.
	export HOME=$TMP
	trap persistent_cleanup EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
}

persistent_end()
{
	echo "1..$persistent_n"
	[ "$persistent_bad" = 0 ]
}

# fails STATUS PATTERN COMMAND...: it ends with that status, and says why
fails()
{
	local want=$1 pattern=$2 text rc=0

	shift 2
	text=$("$@" 2>&1) || rc=$?
	printf '%s\n' "$text"
	[ "$rc" = "$want" ] || { echo "status $rc instead of $want: $*"; return 1; }
	grep -qE -e "$pattern" <<<"$text" || { echo "no '$pattern' in that: $*"; return 1; }
}

# For what must not be: a "!" before a command does not end a script with -e.
not()
{
	if "$@"; then
		echo "it should fail: $*"
		return 1
	fi
}

# has PATTERN COMMAND...: it succeeds, and there is that in its output
has()
{
	local pattern=$1 text

	shift
	text=$("$@" 2>/dev/null) || return 1
	grep -qE -e "$pattern" <<<"$text" || { echo "no '$pattern' in: $text"; return 1; }
}

# lacks PATTERN COMMAND...: it succeeds, and there is nothing like that in its output
lacks()
{
	local pattern=$1 text

	shift
	text=$("$@" 2>/dev/null) || return 1
	not grep -qE -e "$pattern" <<<"$text"
}

one_line()
{
	[ "$(printf '%s\n' "$1" | wc -l)" = 1 ]
}

# What programs leave in caches comes back with a delay: used_kib [LIMIT]
# MemFree leaves out the free pages in the lists of the CPUs, which grow to some 30 MiB.
used_kib()
{
	local used

	for _ in {1..20}; do
		echo 3 >/proc/sys/vm/drop_caches
		used=$(awk -v page_kib=$(($(getconf PAGESIZE) / 1024)) '
			FILENAME ~ /meminfo/ { v[$1] = $2 }
			FILENAME ~ /zoneinfo/ && $1 == "count:" { free += $2 * page_kib }
			END { print v["MemTotal:"] - v["MemFree:"] - v["Shmem:"] - free }' \
			/proc/meminfo /proc/zoneinfo)
		[ "$used" -gt "${1-$used}" ] || break
		sleep 1
	done
	echo "$used"
}

as_user()
{
	setpriv --reuid=65534 --clear-groups --inh-caps=-all "$@"
}

# users_may_make NUMBER: of sessions, of whole CPUs; until the check that called it has ended
users_may_make()
{
	local sysctl=/proc/sys/kernel paranoid max

	paranoid=$(cat $sysctl/perf_event_paranoid) max=$(cat $sysctl/perf_persistent_max)
	# shellcheck disable=SC2064 # the values of now
	trap "echo $paranoid >$sysctl/perf_event_paranoid
		echo $max >$sysctl/perf_persistent_max" EXIT
	echo -1 >$sysctl/perf_event_paranoid
	echo "$1" >$sysctl/perf_persistent_max
}

# The CPUs that are online, one a line.
online_cpus()
{
	local range

	tr ',' '\n' </sys/devices/system/cpu/online | while read -r range; do
		seq "${range%-*}" "${range#*-}"
	done
}

# outside_chroot COMMAND...: in a mount namespace whose root is this one's; within a chroot, as
# some test machines have, there are no user namespaces
outside_chroot()
{
	mkdir -p "$TMP/outside"
	cat >"$TMP/outside.py" <<-'EOF'
	import ctypes, os, sys
	OPEN_TREE, MOVE_MOUNT, AT_FDCWD = 428, 429, -100
	CLONE_RECURSIVE, EMPTY_PATH = 0x8001, 4
	libc = ctypes.CDLL(None, use_errno=True)
	def call(*args):
	    ret = libc.syscall(*args)
	    if ret < 0:
	        sys.exit(os.strerror(ctypes.get_errno()))
	    return ret
	tree = call(OPEN_TREE, AT_FDCWD, b"/", CLONE_RECURSIVE)
	os.chroot(sys.argv[1])
	for i in range(64):
	    os.chdir("..")
	os.chroot(".")
	call(MOVE_MOUNT, tree, b"", AT_FDCWD, b"/", EMPTY_PATH)
	os.fchdir(tree)
	os.chroot(".")
	os.close(tree)
	os.execvp(sys.argv[2], sys.argv[2:])
	EOF
	exec unshare --mount python3 "$TMP/outside.py" "$TMP/outside" "$@"
}

# man_page FILE: with what it includes
man_page()
{
	local page=$1 line

	while IFS= read -r line; do
		case $line in
		include::*"[]")
			line=${line#include::}
			cat "${page%/*}/${line%"[]"}"
			;;
		*)
			printf '%s\n' "$line"
			;;
		esac
	done <"$page"
}

# man_examples_work PAGE: the examples of a man page are commands that work, one after the other
man_examples_work()
{
	local line

	cd "$TMP"
	# A flight recorder among them does not outlive them.
	trap 'find . -name "*.pid" -exec cat {} + | xargs -r kill' EXIT
	man_page "$1" | sed -n "/^EXAMPLES\$/,/^SEE ALSO/s/^  \\\$ //p" >examples
	[ -s examples ]
	while read -r line; do
		echo "\$ $line"
		sh -c "$line" </dev/null
	done <examples
	sessions | xargs -r perf ctl -d
}

promtool_agrees()
{
	local file

	for file in "$TMP"/*.prom; do
		promtool check metrics <"$file"
	done
}

# What was left in $TMP/*.prom. Debian's promtool is more than the rest of a test needs.
check_metrics()
{
	if command -v promtool >/dev/null; then
		check "promtool takes the metrics" promtool_agrees
	else
		leave_out "promtool takes the metrics" "no promtool"
	fi
}
