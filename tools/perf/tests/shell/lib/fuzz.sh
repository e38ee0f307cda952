# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# What the tests that fuzz share. Sourced, not run. Each target is built with
# AddressSanitizer and UndefinedBehaviorSanitizer, by CLANG, for libFuzzer, and runs
# for FUZZ_SECONDS; the corpus in FUZZ_CORPUS, if set, is read and added to.

SECONDS_TO_RUN=${FUZZ_SECONDS:-20}
CLANG=${CLANG:-clang}

# fuzz_begin NAME: sets FUZZ_DIR, or skips
fuzz_begin()
{
	if ! command -v "$CLANG" >/dev/null; then
		echo "skip: no clang"
		exit 2
	fi
	FUZZ_DIR=$(mktemp -d "/tmp/perf-$1.XXXXXX")
	trap 'rm -rf "$FUZZ_DIR"' EXIT
	cat >"$FUZZ_DIR/main.c" <<-END
		int main(void) { return 0; }
	END
	if ! "$CLANG" -fsanitize=fuzzer-no-link,address "$FUZZ_DIR/main.c" \
			-o "$FUZZ_DIR/main" 2>/dev/null; then
		echo "skip: $CLANG has no sanitizers"
		exit 2
	fi
}

# fuzz_build NAME ARGUMENT...: what the compiler needs
fuzz_build()
{
	"$CLANG" -g -O1 -D_GNU_SOURCE -fsanitize=fuzzer,address,undefined \
		-fno-sanitize-recover=undefined "${@:2}" -o "$FUZZ_DIR/$1"
}

# fuzz_print_inputs DIR: what it failed at, which is gone with the directory
fuzz_print_inputs()
{
	local input

	for input in "$1"/{crash,leak,oom,slow-unit,timeout}-*; do
		[ -e "$input" ] || continue
		echo "${input##*/}: base64 -d | gunzip"
		gzip -9c "$input" | base64 -w 0
		echo
	done
}

# fuzz_run NAME RUNS OPTION...: it fails on an error, when it hangs, and with fewer runs; a
# machine that is busy gets more time for them
fuzz_run()
{
	local name=$1 least=$2 corpus=${FUZZ_CORPUS:-$FUZZ_DIR/corpus} runs=0 n began=$SECONDS

	mkdir -p "$corpus/$name" "$FUZZ_DIR/$name.run"
	for ((n = 0; n < 20 && (n == 0 || runs < least); n++)); do
		if ! (cd "$FUZZ_DIR/$name.run" && "$FUZZ_DIR/$name" \
				-max_total_time="$SECONDS_TO_RUN" -timeout=150 -max_len=2048 \
				-print_final_stats=1 "${@:3}" "$corpus/$name" \
				>"$FUZZ_DIR/log" 2>&1); then
			tail -n 40 "$FUZZ_DIR/log"
			fuzz_print_inputs "$FUZZ_DIR/$name.run"
			return 1
		fi
		runs=$((runs + $(sed -n 's/^stat::number_of_executed_units: *//p' "$FUZZ_DIR/log")))
	done
	if [ "$runs" -lt "$least" ]; then
		tail -n 20 "$FUZZ_DIR/log"
		echo "only $runs runs"
		return 1
	fi
	echo "$name: $runs runs in $((SECONDS - began)) s"
}
