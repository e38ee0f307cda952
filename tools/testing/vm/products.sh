# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Keep what a kernel or perf was built to beside the compiler's cache, for a tree in which nothing
# was built. Sourced by build.sh.
#
# Theory of operation
# -------------------
# Even if the compiler's cache has all objects, make, ccache and fixdep start for each of them,
# all links are made anew, and perf looks for the libraries of the machine. But all that is built
# of is known before make starts. The key is the hash of it:
#
# - the tarball of the base's source, by size and time, as for unpacking it
# - the files that patches/stage has put over the base, but for those that it is not built of
# - a kernel's options and the test modules; the path of perf, which is a part of it
# - the packages of the machine and their versions: compiler, linker, pahole and the libraries
# - the scripts that build, and what the makefiles take from the environment
#
# Kept is what others read: perf as it is installed; of a kernel its images, modules, the objects
# of kernel/events/, and what it takes to build a module. Other objects are not kept: their
# commands have the path of a tree in them, so make would compile them again. It cannot go on
# from there: after the next change it builds everything, with the compiler's cache. That is why
# only a tree without objects takes what was kept, and why make does not run as long as the key
# is the same.
#
# PRODUCTS names the folder. If it is empty, nothing is kept, and nothing taken.

shopt -s extglob
PRODUCTS=${PRODUCTS-$CCACHE_DIR/products}
[ -z "$PRODUCTS" ] || PRODUCTS=$(realpath -m -- "$PRODUCTS")
# More than what all series and variants have, for a few states of the tree
PRODUCTS_MAX=48

# hash_in FOLDER: names, content and whether they are programs, of the files there whose names
# are read from stdin
hash_in()
{
	local names
	names=$(LC_ALL=C sort) && cd "$1" && xargs -r -d '\n' sha256sum -- <<<"$names" &&
		xargs -r -d '\n' stat -c '%A %n' -- <<<"$names" | cut -c4,11-
}

# hash_staged VARIANT PATTERN: of what patches/stage has put into its source, all but that
hash_staged()
{
	[[ $1 != base* ]] || return 0
	python3 -c 'import json, sys; print(*json.load(open(sys.argv[1])), sep="\n")' \
		"$BUILD/$1/src/.staged.json" | grep -vE "$2" | (hash_in "$BUILD/$1/src")
}

# What makefiles take from the environment, but for what build.sh sets
hash_environment()
{
	local name tools='(HOST)?(CC|CXX|LD|AR|NM|AS)|LLVM.*|CLANG.*|CROSS_COMPILE.*|(SUB)?ARCH'
	local paths='PKG_CONFIG.*|CPATH|C(PLUS)?_INCLUDE_PATH|LIBRARY_PATH' others='DEBUG|WERROR'
	for name in $(compgen -e | LC_ALL=C sort); do
		[[ $name =~ ^($tools|$paths|$others|NO_.*|EXTRA_.*|.*FLAGS)$ ]] || continue
		[[ $name == @(|GNU)MAKEFLAGS || $name == MFLAGS ]] ||
			printf '%s=%s\n' "$name" "${!name}"
	done
}

# The compilers that are found, which the packages alone do not tell
hash_tools()
{
	local PATH=${PATH//\/usr\/lib\/ccache:/} tool path
	for tool in gcc ld clang pahole python3; do
		# Without one that is needed, the build fails, and says so.
		path=$(type -P $tool) || continue
		readlink -f "$path" && "$path" --version || return
	done
}

# hash_common WHAT VARIANT: what counts for kernel and perf
hash_common()
{
	printf '%s\n' "$BASE" "$@" && hash_environment && hash_tools && dpkg-query -W &&
		cat "$BUILD/base/.unpacked" && printf '%s\n' build.sh products.sh | (hash_in "$VM")
}

# kernel_key VARIANT: its key, to stdout
kernel_key()
{
	local modules=$BUILD/patched/src/tools/testing/selftests/perf_events/test_modules
	{
		options "$1" && hash_common kernel "$1" &&
			hash_staged "$1" '^(Documentation|tools/(perf|lib/perf|testing))/' &&
			(cd "$modules" && printf '%s\n' *) | (hash_in "$modules") &&
			(cd "$VM" && printf '%s\n' poke_again/*) | (hash_in "$VM")
	} | sha256sum | cut -d' ' -f1
}

# perf_key VARIANT: its key, to stdout
perf_key()
{
	{
		hash_common perf "$1" && printf '%s\n' "$BUILD" &&
			hash_staged "$1" '^(Documentation|kernel|tools/testing)/'
	} | sha256sum | cut -d' ' -f1
}

# is_built WHAT VARIANT KEY: whether WHAT is built of just that, here
is_built()
{
	local dir=$BUILD/$2
	case $1 in
	kernel) [ -f "$dir/bzImage" ] && [ -f "$dir/kernel/vmlinux" ] ;;
	perf) [ -x "$dir/bin/perf" ] ;;
	esac && [ "$(cat "$dir/$1/.key" 2>/dev/null)" = "$3" ]
}

# take_products WHAT VARIANT KEY: into a tree without objects, if they were kept
take_products()
{
	local what=$1 variant=$2 kept=$PRODUCTS/$3.tar.zst dir=$BUILD/$2/taken-$1 name
	[ -n "$PRODUCTS" ] && [ -f "$kept" ] && [ ! -e "$BUILD/$variant/$what" ] || return 1
	rm -rf "$dir"
	mkdir -p "$dir"
	if ! zstd -dcq "$kept" | tar -C "$dir" -xf -; then
		say "$kept cannot be unpacked: $what $variant is built"
		rm -rf "$dir"
		zstd -tq "$kept" || rm -f "$kept"
		return 1
	fi
	touch -c "$kept"
	# It is newer than the Kconfig of this tree.
	[ ! -f "$dir/kernel/.config" ] || touch "$dir/kernel/.config"
	# The folder with the key last, as it tells that all is there
	for name in "$dir"/!("$what") "$dir/$what"; do
		rm -rf "${BUILD:?}/$variant/${name##*/}"
		mv "$name" "$BUILD/$variant/" || return
	done
	rmdir "$dir"
	say "$what $variant: taken from $PRODUCTS"
}

# The names of what is kept, each ended by a null
kernel_products()
{
	printf '%s\0' bzImage kernel/{vmlinux,System.map,Module.symvers,modules.order} &&
		printf '%s\0' kernel/.{config,want,key} &&
		find test_modules poke_again kernel/{scripts,include,arch/x86/include} ! -type d \
			-print0 &&
		find kernel/tools -type f -perm /u+x -print0 &&
		find kernel/{kernel,arch/x86}/events -name '*.o' -print0 &&
		sed -n 's|^\(.*\)\.o$|kernel/\1.ko|p' kernel/modules.order | tr '\n' '\0'
}

perf_products()
{
	local names=(perf/.key bin @(etc|include|lib|lib64|libexec|share))
	printf '%s\0' "${names[@]}"
}

# keep_products WHAT VARIANT KEY: what was built. A disk without room is no error.
keep_products()
{
	local what=$1 dir=$BUILD/$2 new
	if [ "$("${what}_key" "$2")" != "$3" ]; then
		say "what $what $2 is built of changed meanwhile: build it again"
		return
	fi
	printf '%s\n' "$3" >"$dir/$what/.key"
	[ -n "$PRODUCTS" ] || return 0
	if mkdir -p "$PRODUCTS" && new=$(mktemp "$PRODUCTS/.new.XXXXXX") &&
	   (cd "$dir" && "${what}_products" | sort -zu | tar --null -T - -cf - |
		zstd -q -1 -T0 -f -o "$new") && mv "$new" "$PRODUCTS/$3.tar.zst"; then
		prune_products
	else
		say "$what $2 is not kept: $PRODUCTS cannot be written"
		rm -f "${new-}"
	fi
}

# What was not taken for longest goes, and what a build left that was ended. Another build may
# do the same at this moment.
prune_products()
{
	(
		cd "$PRODUCTS" || exit
		find . -maxdepth 1 -name '.new.*' -mmin +600 -delete
		# shellcheck disable=SC2012 # no strange names
		ls -t -- *.tar.zst | tail -n +$((PRODUCTS_MAX + 1)) | xargs -r -d '\n' rm -f --
	) 2>/dev/null || true
}
