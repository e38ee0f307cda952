#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Build kernel and perf of the variants: base (untouched), patched, and debug
# (patched, with every checker on). The products: build/VARIANT/bzImage,
# build/VARIANT/bin/perf. What is up to date is left alone. Others are built only where they
# are named: base_preempt and patched_preempt, with preemption and the ORC unwinder, base_debuginfo,
# as a distribution has its kernel, kcsan, the patched kernel with the detector of data races, and
# irqsoff, the patched kernel with the tracepoints of interrupts that are off, and security modules.
#
# usage: build.sh [--stage-only] [configure|kernel|perf|selftests|all] [VARIANT...]
set -euo pipefail
# shellcheck source=tools/testing/vm/lib.sh
. "${BASH_SOURCE[0]%/*}/lib.sh"

VM=$TOP/tools/testing/vm
# The variants that are built only where they are named
NAMED=(base_preempt patched_preempt base_debuginfo kcsan irqsoff)
export PATH=/usr/lib/ccache:$PATH
export CCACHE_DIR=${CCACHE_DIR:-$BUILD/ccache} CCACHE_BASEDIR=$BUILD CCACHE_NOHASHDIR=1
# What a file includes is known from the compiler's own list of it, not by a second run of the
# preprocessor. Of programs such as objtool, that list leaves out the system's headers.
export CCACHE_DEPEND=1
# The target's path, in which the variant is, is for the list alone, and is not read there: what
# is the same in base's perf and in the patched one is compiled once.
export CCACHE_IGNOREOPTIONS='-Wp,-MT,*'
export KBUILD_BUILD_USER=perf KBUILD_BUILD_HOST=vm KBUILD_BUILD_TIMESTAMP=@0
export LC_ALL=C
umask 022
# shellcheck source=tools/testing/vm/products.sh
. "$VM/products.sh"

# The pristine tree, unpacked once for each version of Debian's package.
unpack()
{
	local tarball=/usr/src/linux-source-$BASE.tar.xz stamp
	# What another release of Debian has is fetched, not installed: see deps.sh.
	[ "$BASE" = 6.12 ] || tarball=$BUILD/source/${tarball##*/}
	[ -f "$tarball" ] || die "$tarball is missing: run 'make deps' first"
	stamp=$(stat -c '%s %Y' "$tarball")
	if [ "$(cat "$BUILD/base/.unpacked" 2>/dev/null)" = "$stamp" ]; then
		return
	fi
	enough_room 8
	say "unpacking ${tarball##*/}"
	rm -rf "$BUILD/base" "$BUILD/patched" "$BUILD/debug" "${NAMED[@]/#/"$BUILD/"}"
	mkdir -p "$BUILD/base"
	tar -C "$BUILD/base" -xf "$tarball" ||
		die "$tarball cannot be unpacked: if the disk is not full, it is damaged:" \
		    "apt-get install --reinstall linux-source-$BASE"
	mv "$BUILD/base/linux-source-$BASE" "$BUILD/base/src"
	printf '%s\n' "$stamp" >"$BUILD/base/.unpacked"
}

# The variant whose source and whose perf another one has: what differs is the kernel's
# configuration.
perf_of()
{
	case $1 in
	base*) printf 'base\n' ;;
	*) printf 'patched\n' ;;
	esac
}

stage()
{
	local variant
	unpack
	if [ ! -f "$BUILD/patched/.copied" ]; then
		rm -rf "$BUILD/patched/src"
		mkdir -p "$BUILD/patched"
		cp -al "$BUILD/base/src" "$BUILD/patched/src"
		touch "$BUILD/patched/.copied"
	fi
	for variant in debug "${NAMED[@]}"; do
		mkdir -p "$BUILD/$variant"
		ln -sfn "../$(perf_of "$variant")/src" "$BUILD/$variant/src"
	done
	"$TOP/patches/stage" "$BUILD/base/src" "$BUILD/patched/src" >&2
}

# The fragments of a variant.
fragments()
{
	printf '%s\n' "$VM/config/boot.config" "$VM/config/$BASE.config" "$VM/config/perf.config"
	[ "$1" = debug ] || printf '%s\n' "$VM/config/incidents.config"
	case $1 in
	base*) ;;
	*) printf '%s\n' "$VM/config/patched.config" "$VM/config/crash.config" ;;
	esac
	case $1 in
	patched)
		printf '%s\n' "$VM/config/btf.config" "$VM/config/survive.config" \
			"$VM/config/stalls.config"
		;;
	*_preempt) printf '%s\n' "$VM/config/preempt.config" ;;
	base_debuginfo)
		printf '%s\n' "$VM/config/crash.config" "$VM/config/btf.config" \
			"$VM/config/survive.config"
		;;
	kcsan) printf '%s\n' "$VM/config/kcsan.config" ;;
	irqsoff) printf '%s\n' "$VM/config/btf.config" "$VM/config/irqsoff.config" ;;
	debug) printf '%s\n' "$VM/config/kunit-suites.config" "$VM/config/debug.config" ;;
	esac
	[[ $BASE/$1 != 7.3/@(base|patched) ]] || printf '%s\n' "$VM/config/handover.config"
	# There, what is preempted in a BPF program makes the kernel skip it for others.
	[[ $BASE/$1 != 7.3/patched_preempt ]] || printf '%s\n' "$VM/config/btf.config"
}

# The options of a variant that are asked for.
options()
{
	local files
	mapfile -t files < <(fragments "$1")
	cat "${files[@]}" | sed -nE 's/^(CONFIG_[A-Z0-9_]+=.*)$/\1/p'
}

# Make .config of the fragments, and refuse an option that did not take.
configure()
{
	local variant=$1 out=$BUILD/$1/kernel want line option
	mkdir -p "$out"
	want=$(options "$variant")
	if ! printf '%s\n' "$want" | cmp -s - "$out/.want" ||
	   [ "$out/.config" -ot "$BUILD/patched/src/kernel/events/Kconfig" ]; then
		rm -f "$out/.key"
		printf '%s\n' "$want" >"$out/.want.new"
		make -s -C "$BUILD/$variant/src" O="$out" \
			KCONFIG_ALLCONFIG="$out/.want.new" allnoconfig \
			>"$BUILD/$variant/config.log" 2>&1 ||
			{ cat "$BUILD/$variant/config.log" >&2; die "configuring $variant failed"; }
		mv "$out/.want.new" "$out/.want"
	fi
	while read -r line; do
		option=${line%%=*}
		if [ "${line#*=}" = n ]; then
			! grep -q "^$option=" "$out/.config" ||
				die "$variant: $option cannot be switched off"
		else
			grep -qxF "$line" "$out/.config" ||
				die "$variant: $line did not take effect"
		fi
	done < <(tac "$out/.want" | awk -F= '!seen[$1]++')
}

build_kernel()
{
	local variant=$1 out=$BUILD/$1/kernel key
	key=$(kernel_key "$variant")
	! is_built kernel "$variant" "$key" && ! take_products kernel "$variant" "$key" || return 0
	rm -f "$out/.key"
	configure "$variant"
	run_logged "kernel $variant" "$BUILD/$variant/kernel.log" \
		make -C "$BUILD/$variant/src" O="$out" -j"$JOBS" vmlinux modules
	# With CCACHE_DEPEND, ccache does not know that piggy.S includes the compressed vmlinux. It
	# would take one that has the same size.
	sha256sum <"$out/vmlinux" >"$out/.vmlinux.sum"
	run_logged "image $variant" "$BUILD/$variant/image.log" \
		env CCACHE_EXTRAFILES="$out/.vmlinux.sum" \
		make -C "$BUILD/$variant/src" O="$out" -j"$JOBS" bzImage
	cmp -s "$out/arch/x86/boot/bzImage" "$BUILD/$variant/bzImage" ||
		cp --remove-destination "$out/arch/x86/boot/bzImage" "$BUILD/$variant/bzImage"
	build_module "$variant" test_modules \
		"$BUILD/patched/src/tools/testing/selftests/perf_events/test_modules"
	build_module "$variant" poke_again "$VM/poke_again"
	keep_products kernel "$variant" "$key"
}

build_perf()
{
	local variant=$1
	local other key
	other=$(perf_of "$variant")
	if [ "$variant" != "$other" ]; then
		build_perf "$other"
		mkdir -p "$BUILD/$variant"
		ln -sfn "../$other/bin" "$BUILD/$variant/bin"
		return
	fi
	key=$(perf_key "$variant")
	! is_built perf "$variant" "$key" && ! take_products perf "$variant" "$key" || return 0
	mkdir -p "$BUILD/$variant/perf"
	# What was installed and is no more would be kept.
	rm -rf "$BUILD/$variant/perf/.key" "$BUILD/$variant/libexec/perf-core"
	# Without libLLVM, whose half a million relocations are most of what it takes perf to
	# start under emulation; addr2line and objdump do what it is there for. Two thirds of
	# the others are in libcapstone and libpfm. No test disassembles a trace, or names an
	# event of a PMU.
	run_logged "perf $variant" "$BUILD/$variant/perf.log" \
		make -C "$BUILD/$variant/src/tools/perf" O="$BUILD/$variant/perf" \
		-j"$JOBS" prefix="$BUILD/$variant" WERROR=0 \
		PYTHON=/usr/bin/python3 PYTHON_CONFIG=/usr/bin/python3-config \
		BUILD_BPF_SKEL=1 NO_LIBLLVM=1 NO_LIBPERL=1 NO_JVMTI=1 NO_GTK2=1 \
		NO_CAPSTONE=1 NO_LIBPFM4=1 NO_SHELLCHECK=1 NO_RUST=1 install-bin
	# A warning of gcc 12, an error of gcc 14. What was built so is built again.
	if grep 'Wimplicit-function-declaration' "$BUILD/$variant/perf.log" >&2; then
		rm -rf "$BUILD/$variant/perf"
		die "perf $variant calls what it has not declared, see above"
	fi
	keep_products perf "$variant" "$key"
}

# end_tree PID...: these, and all that they have started; who starts more first
end_tree()
{
	local pid children
	for pid in "$@"; do
		mapfile -t children < <(pgrep -P "$pid")
		kill "$pid" 2>/dev/null || true
		end_tree "${children[@]}"
	done
}

# Side by side: perf's feature checks and the kernel's last links have one CPU's work.
# Where one fails, the other ends as well, so that the error is the last that is said.
build_both()
{
	local rc=0
	build_kernel "$1" &
	BUILDS=($!)
	build_perf "$1" &
	BUILDS+=($!)
	trap 'end_tree "${BUILDS[@]}"' EXIT
	wait -n && wait -n || rc=$?
	[ $rc = 0 ] || exit $rc
	trap - EXIT
}

# build_module VARIANT NAME SOURCES: a module for the kernel of a variant, in build/VARIANT/NAME
build_module()
{
	local variant=$1 out=$BUILD/$1/$2 file
	for file in "$out"/*.[ch] "$out/Makefile"; do
		[ ! -e "$file" ] || [ -e "$3/${file##*/}" ] || rm -rf "$out"
	done
	mkdir -p "$out"
	cp -pu "$3"/* "$out"
	run_logged "module $2 $variant" "$BUILD/$variant/module-$2.log" \
		make -C "$BUILD/$variant/kernel" M="$out" -j"$JOBS" modules
}

# The kselftests of perf events, against the headers of the patched kernel.
build_selftests()
{
	local out=$BUILD/patched/selftests src=$BUILD/patched/src
	mkdir -p "$out"
	run_logged "kernel headers" "$BUILD/patched/headers.log" \
		make -C "$src" O="$BUILD/patched/kernel" -j"$JOBS" headers
	# Their Makefile does not know on what of the kernel's headers they depend.
	if [ "$(find "$BUILD/patched/kernel/usr/include/linux" -name 'perf_*.h' \
		-newer "$out/.built" 2>&1)" ]; then
		rm -rf "$out"
		mkdir -p "$out"
	fi
	run_logged "selftests" "$BUILD/patched/selftests.log" \
		make -C "$src/tools/testing/selftests/perf_events" -j"$JOBS" OUTPUT="$out" \
		top_srcdir="$src" KHDR_INCLUDES="-isystem $BUILD/patched/kernel/usr/include" \
		TEST_GEN_MODS_DIR=
	touch "$out/.built"
}

# libperf's tests and example program.
build_libperf()
{
	local out=$BUILD/patched/libperf
	mkdir -p "$out"
	run_logged "libperf tests" "$BUILD/patched/libperf.log" \
		make -C "$BUILD/patched/src/tools/lib/perf" O="$out" -j"$JOBS" make-tests
}

build_init()
{
	local out=$BUILD/vm name
	mkdir -p "$out"
	if [ ! -x "$out/init" ] || [ "$VM/init.c" -nt "$out/init" ]; then
		gcc -static -O1 -Wall -Wextra -Werror -o "$out/init" "$VM/init.c"
	fi
	[ "$(uname -m)" = x86_64 ] || return 0
	for name in tsc-khz patch-text; do
		if [ ! -x "$out/$name" ] || [ "$VM/$name.c" -nt "$out/$name" ]; then
			gcc -O1 -Wall -Wextra -Werror -o "$out/$name" "$VM/$name.c"
		fi
	done
}

# Copies of files of the host, which change with its packages: see init.c.
build_near()
{
	local near=$BUILD/vm/near.cpio perfs=() variant newest
	for variant in patched base; do
		[ ! -x "$BUILD/$variant/bin/perf" ] || perfs+=("$BUILD/$variant/bin/perf")
	done
	# shellcheck disable=SC2012 # no strange names
	newest=$(ls -dt /etc/ld.so.cache /var/lib/dpkg/status "$VM/near-files.py" "${perfs[@]}" |
		head -n1)
	[[ $near -nt $newest || $(uname -m) != x86_64 ]] && return
	rm -rf "$BUILD/vm/near"
	# What is installed meanwhile is newer.
	touch "$near.begun"
	"$VM/near-files.py" "$BUILD/vm/near/near" "${perfs[@]}"
	(cd "$BUILD/vm/near" && find . | cpio -o -H newc --quiet -R 0:0) >"$near.new"
	touch -r "$near.begun" "$near.new"
	mv "$near.new" "$near"
	rm -rf "$BUILD/vm/near"
}

# Whoever did not come through make may have none of it.
tools_are_there()
{
	local tool
	for tool in make gcc flex bison bc cpio patch perl pahole; do
		command -v "$tool" >/dev/null || die "$tool is missing: run 'make deps'"
	done
	mkdir -p "$BUILD" 2>/dev/null || true
	[ -w "$BUILD" ] || die "$BUILD cannot be written: is the tree another user's?"
}

main()
{
	local what=all variant
	tools_are_there
	exec 9>"$BUILD/.lock"
	flock -w 3000 9 || die "another build holds $BUILD/.lock"
	stage
	[ "${1-}" != --stage-only ] || return 0
	case "${1-}" in
	configure|kernel|perf|selftests|all) what=$1; shift ;;
	esac
	[ $# -gt 0 ] || set -- "${VARIANTS[@]}"
	build_init
	for variant in "$@"; do
		case " ${VARIANTS[*]} ${NAMED[*]} " in
		*" $variant "*) ;;
		*) die "no variant '$variant'; there are: ${VARIANTS[*]} ${NAMED[*]}" ;;
		esac
		[ "$what" != configure ] || configure "$variant"
		case $what in
		kernel) build_kernel "$variant" ;;
		perf) build_perf "$variant" ;;
		all) build_both "$variant" ;;
		esac
	done
	build_near
	case "$what $* " in
	selftests*|"all "*patched*|"all "*debug*)
		build_selftests
		build_libperf
		;;
	esac
}

main "$@"
