/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FLIGHT_TERMS_H
#define __PERF_FLIGHT_TERMS_H

#include <linux/compiler.h>
#include <stddef.h>

struct flight_trigger;

/**
 * enum flight_term_type - what a term is, and what it is stored as
 * @TERM_FLAG: KEY; a bool
 * @TERM_WORD: KEY=TEXT; a char *, to be freed
 * @TERM_TIME: KEY=TIME; a u64 in ns
 * @TERM_PERCENT: KEY=N%; a u64
 * @TERM_REST: KEY=TEXT up to the end of all terms, with commas; a char *, to be freed
 */
enum flight_term_type {
	TERM_FLAG,
	TERM_WORD,
	TERM_TIME,
	TERM_PERCENT,
	TERM_REST,
};

/**
 * struct flight_term - a term of a kind of trigger
 * @key: its name; NULL at the end of a table
 * @type: what it is
 * @offset: where its value is, from @priv of the trigger on
 */
struct flight_term {
	const char		*key;
	enum flight_term_type	type;
	size_t			offset;
};

int flight_terms__parse(struct flight_trigger *t, const struct flight_term *table, char *terms);
int flight_terms__refuse(const struct flight_trigger *t, const char *fmt, ...) __printf(2, 3);

#endif /* __PERF_FLIGHT_TERMS_H */
