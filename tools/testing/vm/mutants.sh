#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Do the tests see what they are there to see? Each patch in patches/mutants/ breaks our
# code in one place. It is applied to a copy of the tree, which is built, and the suite
# that the patch names is run there: it must fail. Prints a table, and TAP. What is caught
# by nothing wants a test.
#
# usage: mutants.sh [PATTERN...]	those whose names match a shell pattern; all without
#	NO_WHOLE=1: do not try first that the suites pass without a mutant
#
# A patch says of itself, each in one line:
#	Subject: what is wrong now
#	Build: arguments of build.sh, such as "kernel patched"
#	Suite: WHERE SECONDS COMMAND, as in the file suites
#	Base: the series of kernels that it is tried on; without it, 6.12
#
# The copy, in build/mutants/tree, and what is built there are kept for the next time.
set -euo pipefail
# shellcheck source=tools/testing/vm/lib.sh
. "${BASH_SOURCE[0]%/*}/lib.sh"
# shellcheck source=tools/testing/vm/tap.sh
. "${BASH_SOURCE[0]%/*}/tap.sh"

MUTANTS=$TOP/patches/mutants
WORK=$BUILD/mutants
TREE=$WORK/tree
export CCACHE_DIR=${CCACHE_DIR:-$BUILD/ccache}
# What mutants are built to is for nobody else.
export PRODUCTS=

# Our files as they are now; what was built of them stays.
copy_tree()
{
	mkdir -p "$TREE"
	rsync -a --delete --exclude /build --exclude /.git "$TOP/" "$TREE/"
	# It is git that tells stage which files there are.
	[ -d "$TREE/.git" ] || git -C "$TREE" init -q
}

field()
{
	sed -n "s/^$1: //p;/^---/q" "$2"
}

set_base()
{
	BASE=$(field Base "$1")
	BASE=${BASE:-6.12}
}

# The source of another series is not fetched again, and what main() builds is for 6.12.
prepare_base()
{
	[ "$BASE" != 6.12 ] || return 0
	mkdir -p "$TREE/build/$BASE"
	ln -sfn "$TOP/build/$BASE/source" "$TREE/build/$BASE/source"
	build_words "selftests patched" "$1" && build_words "perf base" "$1"
}

# build PATCH NAME: what it names, and the kernel that its suite boots
build()
{
	local where
	prepare_base "$2" || return
	where=$(field Suite "$1" | sed 's/^[!~]*//; s/[: ].*//')
	build_words "$(field Build "$1")" "$2" || return
	[ "$where" = host ] || build_words "kernel $where" "$2"
}

build_words()
{
	# shellcheck disable=SC2086 # a list of words
	"$TREE/tools/testing/vm/build.sh" $1 >>"$WORK/$2.build.log" 2>&1
}

# The suite that the patch names, of the tree as it is: 0 if it passes
run_suite()
{
	local patch=$1 name=$2
	printf '%s %s\n' "$name" "$(field Suite "$patch")" >"$WORK/$name.suite"
	# A mutant may hang: it is not waited for longer than an idle machine takes.
	SUITES=$WORK/$name.suite ONLY='*' MINUTES='' SLACK=1 "$TREE/tools/testing/vm/run-tests.sh" \
		>"$WORK/$name.log" 2>&1
}

# What failed, and how: the name of a test, a splat, a status
caught_by()
{
	local text
	text=$(grep -m1 -oE "not ok [0-9]+ .*" "$1" | sed -E 's/^not ok [0-9]+ //') || true
	[ -n "$text" ] ||
		text=$(sed -nE 's/.*(kernel splat on [^:]*: .{0,60}).*/\1/p' "$1" | head -n1)
	[ -n "$text" ] || text=$(sed -nE 's/.*(ended with status .*)/\1/p' "$1" | head -n1)
	echo "${text:-?}"
}

# A mutant that does not apply, or does not build, or whose guest does not start, has tried
# nothing.
try()
{
	local patch=$1 name by status=1
	local -x BASE
	set_base "$patch"
	name=$(basename "$patch" .patch)
	rm -f "$WORK/$name.build.log"
	copy_tree
	if ! patch -s -p1 -F2 --no-backup-if-mismatch -d "$TREE" <"$patch" \
		>"$WORK/$name.build.log" 2>&1; then
		by="does not apply any more: $(head -n1 "$WORK/$name.build.log")"
	elif ! build "$patch" "$name"; then
		by="does not build: $WORK/$name.build.log"
	elif run_suite "$patch" "$name"; then
		by="NOTHING"
	elif grep -qE 'vm\.sh: .* is not built' "$WORK/$name.log"; then
		by="nothing, as its guest did not start: $WORK/$name.log"
	else
		status=0
		by=$(caught_by "$WORK/$name.log")
	fi
	printf '| %s | %s | %s |\n' "$name" "$(field Subject "$patch")" "$by" >>"$WORK/table"
	[ $status = 0 ] || echo "# $by"
	tap_ok $status "$name: $(field Subject "$patch")"
}

# Does the suite pass without a mutant? Once for each.
try_whole()
{
	local patch=$1 name suite
	local -x BASE
	set_base "$patch"
	name=$(basename "$patch" .patch)
	suite=$(field Suite "$patch")
	! grep -qxF "$BASE $suite" "$WORK/whole" || return 0
	printf '%s\n' "$BASE $suite" >>"$WORK/whole"
	rm -f "$WORK/whole-$name.build.log"
	copy_tree
	if build "$patch" "whole-$name" && run_suite "$patch" "whole-$name"; then
		tap_ok 0 "without a mutant: $suite"
	else
		tap_ok 1 "without a mutant: $suite"
	fi
}

main()
{
	local pattern patch
	[ $# -gt 0 ] || set -- '*'
	mkdir -p "$WORK"
	: >"$WORK/table"
	: >"$WORK/whole"
	copy_tree
	rm -f "$WORK/selftests.build.log"
	build_words "selftests patched" selftests ||
		die "the tests do not build: $WORK/selftests.build.log"
	# Recordings are read with it: see BASE_PERF.
	rm -f "$WORK/base.build.log"
	build_words "perf base" base || die "perf of the base does not build: $WORK/base.build.log"
	for pattern; do
		for patch in "$MUTANTS"/$pattern.patch; do
			[ -f "$patch" ] || die "there is no mutant called $pattern"
			[ -n "${NO_WHOLE:-}" ] || try_whole "$patch"
			try "$patch"
		done
	done
	sed 's/^/# /' "$WORK/table"
	tap_end
}

main "$@"
