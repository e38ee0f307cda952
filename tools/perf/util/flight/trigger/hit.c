// SPDX-License-Identifier: GPL-2.0
/*
 * Report of a hit by a trigger: the reason, and whether the recorder is to end
 */
#include "triggers.h"

#include <linux/kernel.h>
#include <stddef.h>

/**
 * flight_trigger__end - let the dump of the next hit end the recorder
 * @t: the trigger
 * @action: what to do after the dump
 *
 * The cooldown does not apply to this hit.
 */
void flight_trigger__end(struct flight_trigger *t, enum flight_action action)
{
	t->wanted = max(t->wanted, action);
	t->quiet_until = 0;
}

/**
 * flight_trigger__set_reason - set the reason of a hit
 * @t: the trigger
 * @reason: untrusted data; it is converted to plain text
 */
void flight_trigger__set_reason(struct flight_trigger *t, const char *reason)
{
	size_t i;

	for (i = 0; reason[i] && i < sizeof(t->reason) - 1; i++)
		t->reason[i] = reason[i] < ' ' || reason[i] > '~' ? '?' : reason[i];
	t->reason[i] = '\0';
}
