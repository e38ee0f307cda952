// SPDX-License-Identifier: GPL-2.0
/*
 * A comparison in words, as tables, and as JSON.
 */
#include "changes.h"
#include "words.h"

#include "json-writer.h"
#include "strbuf.h"

#include <inttypes.h>
#include <linux/kernel.h>
#include <linux/time64.h>
#include <stdio.h>

#define MOST_PRINTED	15	/* of a figure */
#define MOST_WRITTEN	200

static const struct {
	const char	*name;
	const char	*title;
} figures[FIGURE_NR] = {
	[FIGURE_SELF]		= { "self", "Functions, by samples of themselves" },
	[FIGURE_TOTAL]		= { "total", "Functions, by samples with those they called" },
	[FIGURE_ON]		= { "on_cpu", "Tasks, by seconds on a CPU" },
	[FIGURE_RUNNABLE]	= { "runnable", "Tasks, by seconds of waiting for a CPU" },
	[FIGURE_OFF]		= { "off_cpu", "Tasks, by seconds of waiting for something else" },
};

static double seconds(u64 ns)
{
	return (double)ns / NSEC_PER_SEC;
}

/* Why nothing is compared */
static void tell_why(struct strbuf *sb, const struct verdict_comparison *cmp,
		     const struct verdict_history *h)
{
	static const char not_told[] = "What changed is not told: ";

	if (cmp->compared == COMPARED_UNKNOWN) {
		strbuf_addstr(sb, not_told);
		strbuf_addstr(sb, "switches of that time are missing, or records of some CPUs.");
		return;
	}
	strbuf_addf(sb, "%sit takes %u calm parts as long as the one that is compared", not_told,
		    VERDICT_MIN_CALM);
	if (cmp->now.end) {
		strbuf_addf(sb, ", %.3f s, and there are %u.",
			    seconds(cmp->now.end - cmp->now.start), cmp->nr_calm);
		return;
	}
	strbuf_addf(sb, ", of %.3f s or more. There are records of all CPUs for %.3f s.",
		    seconds(VERDICT_MIN_PART), seconds(h->newest - cmp->since));
}

static void tell_what(struct strbuf *sb, const struct verdict_comparison *cmp)
{
	u64 oldest = UINT64_MAX, newest = 0;
	u32 i;

	for (i = 0; i < cmp->nr_calm; i++) {
		oldest = min(oldest, cmp->calm[i].start);
		newest = max(newest, cmp->calm[i].end);
	}
	strbuf_addf(sb, "Compared: %.3f s%s, from %.6f to %.6f, ",
		    seconds(cmp->now.end - cmp->now.start),
		    cmp->triggered ? " before the trigger" : "", seconds(cmp->now.start),
		    seconds(cmp->now.end));
	strbuf_addf(sb, "with %u calm parts of that length from %.6f to %.6f.", cmp->nr_calm,
		    seconds(oldest), seconds(newest));
}

static void print_value(enum verdict_figure figure, u64 value)
{
	if (verdict_figure__is_samples(figure))
		printf(" %10" PRIu64, value);
	else
		printf(" %10.3f", seconds(value));
}

static void print_change(const struct verdict_comparison *cmp, const struct verdict_history *h,
			 const struct verdict_chains *c, const struct verdict_change *change)
{
	const u64 values[] = { change->now, change->median, change->least, change->most };
	struct strbuf sb = STRBUF_INIT;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(values); i++)
		print_value(change->figure, values[i]);
	if (verdict_figure__is_samples(change->figure)) {
		const struct verdict_function *f = &c->functions[change->item];

		if (f->name) {
			verdict_words__name(&sb, f->name);
			strbuf_addstr(&sb, "  ");
		}
		strbuf_addch(&sb, '(');
		verdict_words__name(&sb, f->dso);
		strbuf_addch(&sb, ')');
	} else {
		const struct verdict_group *g = &cmp->figures.groups[change->item];

		verdict_words__task(&sb, &h->tasks[g->task]);
		if (g->tasks > 1)
			strbuf_addf(&sb, " and %u of its kind", g->tasks - 1);
	}
	printf("  %s\n", sb.buf);
	strbuf_release(&sb);
}

/**
 * verdict_changes__print - a comparison, for a terminal
 * @cmp: the comparison
 * @h: history
 * @c: functions
 */
void verdict_changes__print(const struct verdict_comparison *cmp,
			    const struct verdict_history *h, const struct verdict_chains *c)
{
	struct strbuf sb = STRBUF_INIT;
	u32 i = 0, first;

	if (cmp->compared != COMPARED)
		tell_why(&sb, cmp, h);
	else
		tell_what(&sb, cmp);
	printf("%s\n", sb.buf);
	strbuf_release(&sb);
	if (cmp->compared != COMPARED)
		return;
	if (!cmp->nr)
		printf("Nothing changed by more than calm parts differ, of %" PRIu64 " figures.\n",
		       cmp->judged);
	while (i < cmp->nr) {
		enum verdict_figure figure = cmp->changes[i].figure;

		printf("\n%s\n", figures[figure].title);
		printf(" %10s %10s %10s %10s\n", "NOW", "CALM", "LEAST", "MOST");
		for (first = i; i < cmp->nr && cmp->changes[i].figure == figure; i++) {
			if (i - first < MOST_PRINTED)
				print_change(cmp, h, c, &cmp->changes[i]);
		}
		if (i - first > MOST_PRINTED)
			printf("  and %u more\n", i - first - MOST_PRINTED);
	}
}

static void write_part(struct json_writer *w, const char *key, const struct verdict_part *part)
{
	json_writer__begin_object(w, key, JSON_STYLE__PADDED);
	json_writer__number(w, "from", part->start);
	json_writer__number(w, "to", part->end);
	json_writer__end(w);
}

static void write_change(struct json_writer *w, const struct verdict_comparison *cmp,
			 const struct verdict_history *h, const struct verdict_chains *c,
			 const struct verdict_change *change)
{
	json_writer__begin_object(w, NULL, JSON_STYLE__PADDED);
	json_writer__string(w, "figure", figures[change->figure].name);
	if (verdict_figure__is_samples(change->figure)) {
		const struct verdict_function *f = &c->functions[change->item];

		if (f->name)
			json_writer__string(w, "function", f->name);
		json_writer__string(w, "dso", f->dso);
	} else {
		const struct verdict_group *g = &cmp->figures.groups[change->item];

		json_writer__string(w, "comm", h->tasks[g->task].comm);
		json_writer__number(w, "tid", h->tasks[g->task].tid);
		json_writer__number(w, "tasks", g->tasks);
	}
	json_writer__number(w, "now", change->now);
	json_writer__number(w, "median", change->median);
	json_writer__number(w, "least", change->least);
	json_writer__number(w, "most", change->most);
	json_writer__end(w);
}

/**
 * verdict_changes__write - a comparison, as the member "comparison" of an object of JSON
 * @w: where to
 * @cmp: the comparison
 * @h: history
 * @c: functions
 */
void verdict_changes__write(struct json_writer *w, const struct verdict_comparison *cmp,
			    const struct verdict_history *h, const struct verdict_chains *c)
{
	struct strbuf sb = STRBUF_INIT;
	u32 i, nr[FIGURE_NR] = {};

	json_writer__begin_object(w, "comparison", JSON_STYLE__LINES);
	json_writer__bool(w, "compared", cmp->compared == COMPARED);
	if (cmp->compared != COMPARED)
		tell_why(&sb, cmp, h);
	else
		tell_what(&sb, cmp);
	json_writer__string(w, "sentence", sb.buf);
	strbuf_release(&sb);
	json_writer__number(w, "since", cmp->since);
	if (cmp->compared == COMPARED) {
		json_writer__bool(w, "triggered", cmp->triggered);
		write_part(w, "part", &cmp->now);
		json_writer__begin_array(w, "calm", JSON_STYLE__LINES);
		for (i = 0; i < cmp->nr_calm; i++)
			write_part(w, NULL, &cmp->calm[i]);
		json_writer__end(w);
		json_writer__number(w, "judged", cmp->judged);
	}
	json_writer__begin_array(w, "changes", JSON_STYLE__LINES);
	for (i = 0; cmp->compared == COMPARED && i < cmp->nr; i++) {
		if (nr[cmp->changes[i].figure]++ < MOST_WRITTEN)
			write_change(w, cmp, h, c, &cmp->changes[i]);
	}
	json_writer__end(w);
	json_writer__end(w);
}
