// SPDX-License-Identifier: GPL-2.0
/*
 * Old versions of perf took the object or the source of a BPF program for an event, and
 * loaded it. If a user still tries that, perf names what has replaced it.
 */
#include "bpf-hint.h"
#include "../../debug.h"

#include <stdbool.h>
#include <string.h>

static bool ends_with(const char *str, const char *suffix)
{
	size_t len = strlen(str), suffix_len = strlen(suffix);

	return len > suffix_len && !strcmp(str + len - suffix_len, suffix);
}

/**
 * flight_trigger__hint_at_bpf - tell of the BPF trigger if an event looks like a program
 * @event: an event that could not be parsed
 */
void flight_trigger__hint_at_bpf(const char *event)
{
	if (!ends_with(event, ".bpf.o") && !ends_with(event, ".bpf.c"))
		return;
	pr_err("perf does not load BPF programs: load %s with a loader of your own, pin its map, and let it trigger a flight recorder with: perf record -M SIZE --trigger bpf:PINNED_MAP\n",
	       event);
}
