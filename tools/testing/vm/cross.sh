# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Debian's cross compilers. Sourced, after lib.sh.
#
# They are not installed, because their packages conflict with gcc-multilib, which make
# deps installs. They are unpacked to build/cross/tools and are first on PATH.

CROSS_TOOLS=$BUILD/cross/tools
export PATH=/usr/lib/ccache:$CROSS_TOOLS/usr/bin:$PATH LC_ALL=C
export LD_LIBRARY_PATH=$CROSS_TOOLS/usr/lib/x86_64-linux-gnu
export CCACHE_DIR=${CCACHE_DIR:-$BUILD/ccache} CCACHE_BASEDIR=$BUILD CCACHE_NOHASHDIR=1

# unpack_packages NAME...: unpack packages to CROSS_TOOLS
unpack_packages()
{
	local dir=$CROSS_TOOLS/packages package
	mkdir -p "$dir"
	(cd "$dir" && apt-get -q download "$@") || die "could not be downloaded: $*"
	for package in "$dir"/*.deb; do
		dpkg -x "$package" "$CROSS_TOOLS"
	done
	rm -r "$dir"
}

# Unpack Debian's newest compiler for a target, with its assembler.
unpack_compiler()
{
	local triplet=$1 version
	[ ! -x "$CROSS_TOOLS/usr/bin/$triplet-gcc" ] || return 0

	version=$(apt-cache depends "gcc-$triplet" |
		sed -nE "s/.*Depends: gcc-([0-9]+)-$triplet\$/\1/p" | head -n1)
	[ -n "$version" ] || die "Debian's gcc-$triplet is not known here: run 'apt-get update'"
	unpack_packages "gcc-$version-$triplet" "cpp-$version-$triplet" "binutils-$triplet"
	ln -s "$triplet-gcc-$version" "$CROSS_TOOLS/usr/bin/$triplet-gcc"
}

# unpack_libc TRIPLET ARCH: unpack the libraries for static programs
unpack_libc()
{
	local triplet=$1 arch=$2 version
	[ ! -e "$CROSS_TOOLS/usr/$triplet/lib/libc.a" ] || return 0

	version=$(readlink "$CROSS_TOOLS/usr/bin/$triplet-gcc")
	unpack_packages "libc6-dev-$arch-cross" "libc6-$arch-cross" "libgcc-s1-$arch-cross" \
		"linux-libc-dev-$arch-cross" "libgcc-${version##*-}-dev-$arch-cross"
}
