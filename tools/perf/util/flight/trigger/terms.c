// SPDX-License-Identifier: GPL-2.0
/*
 * The terms of a trigger, between the slashes of KIND/TERM,TERM=VALUE/
 *
 * A kind has a table of its terms, and a text of its form, which every error message shows.
 * The message names the part that is wrong.
 */
#include "terms.h"
#include "triggers.h"
#include "../../debug.h"

#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/zalloc.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/**
 * flight_terms__refuse - say what is wrong with the terms of a trigger
 * @t: the trigger
 * @fmt: the part that is wrong, and why
 *
 * Return: -EINVAL.
 */
int flight_terms__refuse(const struct flight_trigger *t, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vscnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	pr_err("--trigger %s: %s. Use %s\n", t->ops->name, text, t->ops->form);
	return -EINVAL;
}

static int parse_percent(const char *value, u64 *percent)
{
	char *end;
	unsigned long number = strtoul(value, &end, 10);

	if (end == value || *value == '-' || number > 100 || (*end && strcmp(end, "%")))
		return -EINVAL;
	*percent = number;
	return 0;
}

static int set_text(char **to, const char *value)
{
	free(*to);
	*to = strdup(value);
	return *to ? 0 : -ENOMEM;
}

static int set_value(struct flight_trigger *t, const struct flight_term *term, const char *value)
{
	void *to = (char *)t->priv + term->offset;

	if (term->type == TERM_FLAG) {
		if (value)
			return flight_terms__refuse(t, "'%s' takes no value", term->key);
		*(bool *)to = true;
		return 0;
	}
	if (!value || !*value)
		return flight_terms__refuse(t, "'%s' requires a value", term->key);
	if (term->type == TERM_TIME && flight__parse_time(value, to))
		return flight_terms__refuse(t, "%s=%s is not a time, such as 150ms or 2s",
					    term->key, value);
	if (term->type == TERM_PERCENT && parse_percent(value, to))
		return flight_terms__refuse(t, "%s=%s is not a percentage from 0%% to 100%%",
					    term->key, value);
	if (term->type == TERM_WORD || term->type == TERM_REST)
		return set_text(to, value);
	return 0;
}

static const struct flight_term *find_term(const struct flight_term *table, const char *key,
					   size_t len)
{
	for (; table->key; table++) {
		if (strlen(table->key) == len && !strncmp(table->key, key, len))
			return table;
	}
	return NULL;
}

/**
 * flight_terms__parse - parse the terms of a trigger into its @priv
 * @t: the trigger
 * @table: the terms that its kind has
 * @terms: the text between the slashes
 *
 * Return: 0, -ENOMEM, or -EINVAL after an error message.
 */
int flight_terms__parse(struct flight_trigger *t, const struct flight_term *table, char *terms)
{
	while (terms && *terms) {
		size_t len = strcspn(terms, "=,");
		const struct flight_term *term = find_term(table, terms, len);
		char *value = NULL;
		int err;

		if (!term)
			return flight_terms__refuse(t, "unknown term '%.*s'", (int)len, terms);
		if (term->type == TERM_REST && terms[len] == '=') {
			value = terms + len + 1;
			terms = NULL;
		} else {
			value = strsep(&terms, ",") + len;
			value = *value == '=' ? value + 1 : NULL;
		}
		err = set_value(t, term, value);
		if (err)
			return err;
	}
	return 0;
}
