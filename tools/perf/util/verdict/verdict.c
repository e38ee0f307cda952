// SPDX-License-Identifier: GPL-2.0
/*
 * perf verdict: who held whom up.
 *
 *	reader.c	reads the records once into
 *	history.c	the waits of tasks and the runs of CPUs; what they waited in
 *			is told by their call chains (stack.c)
 *	disk.c		the requests of tasks to block devices
 *	interrupt.c	the interrupts that had a CPU for long
 *	reclaim.c	the tasks that reclaimed memory
 *	blame.c		follows a wait to what it comes down to
 *	findings.c	adds the waits up that come down to the same
 *	compare.c	compares the part before the trigger with calm ones, by their
 *			figures (figures.c) of functions (chains.c) and tasks
 *	words.c		puts findings into words
 *	changes.c	puts a comparison into words
 *	queues.c	adds up how long tasks waited for CPUs
 *	overhead.c	tells what was not recorded, as the manifest of a dump says
 *
 * The JSON is described in Documentation/admin-guide/perf/perf-verdict.rst.
 */
#include "verdict.h"
#include "changes.h"
#include "compare.h"
#include "findings.h"
#include "queues.h"
#include "reader.h"
#include "stack.h"
#include "words.h"

#include "base-api.h"
#include "container.h"
#include "container-names.h"
#include "debug.h"
#include "evlist.h"
#include "json-reader.h"
#include "json-writer.h"
#include "session.h"
#include "strbuf.h"
#include "time-utils.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/kernel.h>
#include <linux/time64.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_TOLD	10	/* victims and culprits of a finding in JSON */

struct verdict {
	struct verdict_recording	rec;
	struct verdict_history		history;
	struct verdict_chains		chains;
	struct verdict_findings		findings;
	struct verdict_comparison	comparison;
	struct verdict_queues		queues;
};

static double seconds(u64 ns)
{
	return (double)ns / NSEC_PER_SEC;
}

static void print_missing(void *ctx __maybe_unused, const char *events, const char *what)
{
	printf("Not recorded: %s (-e %s)\n", what, events);
}

/* Of the first victim or the first culprit: the containers may be what tells them apart. */
static bool tell_container(struct strbuf *sb, const struct verdict_history *h,
			   const struct verdict_shares *s)
{
	strbuf_setlen(sb, 0);
	return s->nr && verdict_words__container(sb, h, &h->tasks[s->shares[0].task]);
}

static void print_containers(const struct verdict_history *h, const struct verdict_finding *f)
{
	struct strbuf sb = STRBUF_INIT;

	if (tell_container(&sb, h, &f->victims))
		printf("   %s\n", sb.buf);
	if (tell_container(&sb, h, &f->culprits))
		printf("   %s\n", sb.buf);
	strbuf_release(&sb);
}

/* The same sentences */
static void write_containers(struct json_writer *w, const struct verdict_history *h,
			     const struct verdict_finding *f)
{
	struct strbuf sb = STRBUF_INIT;

	json_writer__begin_array(w, "containers", JSON_STYLE__LINES);
	if (tell_container(&sb, h, &f->victims))
		json_writer__string(w, NULL, sb.buf);
	if (tell_container(&sb, h, &f->culprits))
		json_writer__string(w, NULL, sb.buf);
	json_writer__end(w);
	strbuf_release(&sb);
}

static void print_findings(const struct verdict_history *h, const struct verdict_findings *f)
{
	struct strbuf sb = STRBUF_INIT;
	u32 i;
	int l;

	if (!f->nr)
		printf("Nothing was found that held tasks up, in %.3f s and %u tasks.\n",
		       seconds(h->newest - h->oldest), h->nr_tasks - 1);
	for (i = 0; i < f->nr; i++) {
		const struct verdict_finding *finding = &f->findings[i];

		strbuf_setlen(&sb, 0);
		verdict_words__sentence(&sb, h, finding);
		printf("%u. %s\n   %s, from %.6f to %.6f\n", i + 1, sb.buf,
		       verdict_confidences[finding->confidence], seconds(finding->from),
		       seconds(finding->to));
		print_containers(h, finding);
		for (l = 0; l < finding->nr_links; l++) {
			strbuf_setlen(&sb, 0);
			verdict_words__link(&sb, h, finding, l);
			printf("   %*s%s\n", 2 * l, "", sb.buf);
		}
	}
	strbuf_release(&sb);
}

/* Before the findings: what they do not tell */
static void print_overhead(const struct verdict *v)
{
	struct strbuf sb = STRBUF_INIT;

	if (verdict_words__overhead(&sb, v->history.manifest, &v->history))
		printf("%s\n", sb.buf);
	strbuf_setlen(&sb, 0);
	if (verdict_words__shares(&sb, v->history.manifest, &v->history))
		printf("%s\n", sb.buf);
	strbuf_release(&sb);
}

static void print_notes(const struct verdict_history *h)
{
	struct strbuf sb = STRBUF_INIT;

	if (verdict_words__broken(&sb, h))
		printf("%s\n", sb.buf);
	if (h->lost)
		printf("%" PRIu64 " records were lost: the kernel had no room for them.\n",
		       h->lost);
	if (h->half_chains)
		printf("%" PRIu64 " samples lack the user half of their call chain.\n",
		       h->half_chains);
	verdict_words__missing(h, print_missing, NULL);
	strbuf_release(&sb);
}

static void write_cgroup(struct json_writer *w, const struct verdict_history *h,
			 const char *cgroup)
{
	struct container_names names;
	struct container c;

	if (!cgroup)
		return;
	json_writer__string(w, "cgroup", cgroup);
	container__of_cgroup(&c, cgroup);
	if (*c.id)
		json_writer__string(w, "container", c.id);
	if (*c.pod)
		json_writer__string(w, "pod_uid", c.pod);
	if (!container_names__of_manifest(&names, h->manifest, &c))
		return;
	json_writer__known(w, "container_name", names.name);
	json_writer__known(w, "pod", names.pod);
	json_writer__known(w, "pod_namespace", names.pod_namespace);
	container_names__exit(&names);
}

static void write_task(struct json_writer *w, const char *key, const struct verdict_history *h,
		       u32 task, u64 ns)
{
	const struct verdict_task *t = &h->tasks[task];

	json_writer__begin_object(w, key, JSON_STYLE__PADDED);
	json_writer__string(w, "comm", t->comm);
	json_writer__number(w, "tid", t->tid);
	if (t->tgid != VERDICT_NONE)
		json_writer__number(w, "pid", t->tgid);
	if (ns)
		json_writer__number(w, "ns", ns);
	write_cgroup(w, h, t->cgroup);
	json_writer__end(w);
}

static void write_shares(struct json_writer *w, const char *key, const struct verdict_history *h,
			 const struct verdict_shares *s, bool with_ns)
{
	u32 i;

	json_writer__begin_array(w, key, JSON_STYLE__LINES);
	for (i = 0; i < s->nr && i < MOST_TOLD; i++)
		write_task(w, NULL, h, s->shares[i].task, with_ns ? s->shares[i].ns : 0);
	json_writer__end(w);
}

static void write_link(struct json_writer *w, const struct verdict_history *h,
		       const struct verdict_finding *f, int nr)
{
	const struct verdict_link *l = &f->links[nr];
	const struct verdict_place *p = NULL;
	struct strbuf sb = STRBUF_INIT;

	if (l->place != VERDICT_NONE)
		p = &h->places[l->place];
	verdict_words__link(&sb, h, f, nr);
	json_writer__begin_object(w, NULL, JSON_STYLE__PADDED);
	json_writer__string(w, "text", sb.buf);
	write_task(w, "task", h, l->task, 0);
	if (p)
		json_writer__string(w, "waits_for", verdict_classes[l->class]);
	if (l->root)
		json_writer__string(w, "root", verdict_roots[l->root]);
	if (p && p->kernel)
		json_writer__string(w, "kernel_function", p->kernel);
	if (p && p->user)
		json_writer__string(w, "function", p->user);
	else if (l->function)
		json_writer__string(w, "function", l->function);
	json_writer__number(w, "start", l->start);
	json_writer__number(w, "end", l->end);
	json_writer__number(w, "ns", l->ns);
	json_writer__end(w);
	strbuf_release(&sb);
}

static void write_source(struct json_writer *w, const struct verdict_history *h,
			 const struct verdict_finding *f)
{
	const struct verdict_source *source = &h->sources.sources[f->object];

	json_writer__number(w, "cpu", source->cpu);
	if (!source->soft)
		json_writer__number(w, "irq", source->nr);
	json_writer__string(w, source->soft ? "softirq" : "handler", source->name);
	json_writer__number(w, "interrupts", f->times);
	json_writer__number(w, "longest_ns", f->slowest_ns);
	json_writer__number(w, "storm_ns", f->storm_ns);
	json_writer__number(w, "storms_ns", f->storms_ns);
}

static void write_pool(struct json_writer *w, const struct verdict_history *h,
		       const struct verdict_finding *f)
{
	const struct verdict_pool *pool = &h->pools.pools[f->object];

	json_writer__string(w, "memory", pool->limited ? "cgroup" : "machine");
	write_cgroup(w, h, pool->cgroup);
	json_writer__number(w, "reclaims", f->times);
	json_writer__number(w, "longest_ns", f->slowest_ns);
}

static void write_throttle(struct json_writer *w, const struct verdict_history *h,
			   const struct verdict_finding *f)
{
	json_writer__string(w, "limit", verdict_classes[f->object]);
	if (f->object == CLASS_OVER_HIGH && f->victims.nr)
		write_cgroup(w, h, h->tasks[f->victims.shares[0].task].cgroup);
	json_writer__number(w, "longest_ns", f->longest_ns);
}

static void write_finding(struct json_writer *w, const struct verdict_history *h,
			  const struct verdict_finding *f)
{
	struct strbuf sb = STRBUF_INIT;
	char dev[32];
	int l;

	verdict_words__sentence(&sb, h, f);
	json_writer__begin_object(w, NULL, JSON_STYLE__LINES);
	json_writer__string(w, "kind", verdict_kinds[f->kind]);
	json_writer__string(w, "root", verdict_roots[f->root]);
	json_writer__string(w, "confidence", verdict_confidences[f->confidence]);
	json_writer__string(w, "sentence", sb.buf);
	json_writer__number(w, "cost_ns", f->cost_ns);
	json_writer__number(w, "waits", f->count);
	json_writer__number(w, "from", f->from);
	json_writer__number(w, "to", f->to);
	if (f->kind == KIND_DISK) {
		snprintf(dev, sizeof(dev), "%u:%u", verdict_disk__major(f->object),
			 verdict_disk__minor(f->object));
		json_writer__string(w, "device", dev);
		json_writer__number(w, "requests", f->requests);
		json_writer__number(w, "slowest_ns", f->slowest_ns);
	}
	if (f->kind == KIND_INTERRUPT)
		write_source(w, h, f);
	if (f->kind == KIND_RECLAIM)
		write_pool(w, h, f);
	if (f->kind == KIND_THROTTLED)
		write_throttle(w, h, f);
	write_shares(w, "victims", h, &f->victims, true);
	write_shares(w, "culprits", h, &f->culprits, f->kind != KIND_FORKS);
	write_containers(w, h, f);
	json_writer__begin_array(w, "chain", JSON_STYLE__LINES);
	for (l = 0; l < f->nr_links; l++)
		write_link(w, h, f, l);
	json_writer__end(w);
	json_writer__end(w);
	strbuf_release(&sb);
}

static void write_missing(void *ctx, const char *events, const char *what)
{
	struct json_writer *w = ctx;

	json_writer__begin_object(w, NULL, JSON_STYLE__PADDED);
	json_writer__string(w, "events", events);
	json_writer__string(w, "what", what);
	json_writer__end(w);
}

static void write_side_band(struct json_writer *w, const struct verdict_side_band *side_band)
{
	u32 i;

	json_writer__begin_array(w, "losses", JSON_STYLE__LINES);
	for (i = 0; i < side_band->nr_losses; i++) {
		const struct verdict_loss *loss = &side_band->losses[i];

		json_writer__begin_object(w, NULL, JSON_STYLE__PADDED);
		json_writer__number(w, "time", loss->time);
		if (loss->cpu >= 0)
			json_writer__number(w, "cpu", loss->cpu);
		json_writer__number(w, "records", loss->records);
		json_writer__end(w);
	}
	json_writer__end(w);
	json_writer__begin_array(w, "exits", JSON_STYLE__LINES);
	for (i = 0; i < side_band->nr_exits; i++) {
		json_writer__begin_object(w, NULL, JSON_STYLE__PADDED);
		json_writer__number(w, "time", side_band->exits[i].time);
		json_writer__number(w, "tid", side_band->exits[i].tid);
		json_writer__end(w);
	}
	json_writer__end(w);
}

static void print_json(const struct verdict *v, const struct verdict_options *o)
{
	const struct verdict_history *h = &v->history;
	const struct verdict_findings *f = &v->findings;
	struct strbuf sb = STRBUF_INIT;
	struct json_writer w;
	u32 i;

	json_writer__init(&w, stdout);
	json_writer__begin_object(&w, NULL, JSON_STYLE__LINES);
	json_writer__number(&w, "version", 1);
	json_writer__number(&w, "oldest", h->oldest);
	json_writer__number(&w, "newest", h->newest);
	json_writer__number(&w, "tasks", h->nr_tasks - 1);
	json_writer__number(&w, "lost", h->lost);
	if (h->half_chains)
		json_writer__number(&w, "half_chains", h->half_chains);
	if (verdict_words__overhead(&sb, v->history.manifest, h))
		json_writer__string(&w, "overhead", sb.buf);
	strbuf_setlen(&sb, 0);
	if (verdict_words__shares(&sb, v->history.manifest, h))
		json_writer__string(&w, "shares", sb.buf);
	strbuf_setlen(&sb, 0);
	json_writer__begin_array(&w, "findings", JSON_STYLE__LINES);
	for (i = 0; i < f->nr; i++)
		write_finding(&w, h, &f->findings[i]);
	json_writer__end(&w);
	json_writer__begin_array(&w, "missing", JSON_STYLE__LINES);
	verdict_words__missing(h, write_missing, &w);
	json_writer__end(&w);
	json_writer__begin_array(&w, "notes", JSON_STYLE__LINES);
	if (verdict_words__broken(&sb, h))
		json_writer__string(&w, NULL, sb.buf);
	json_writer__end(&w);
	if (o->compare)
		verdict_changes__write(&w, &v->comparison, h, &v->chains);
	if (o->queues)
		verdict_queues__write(&w, &v->queues, h);
	if (o->side_band)
		write_side_band(&w, &h->side_band);
	json_writer__end(&w);
	putchar('\n');
	strbuf_release(&sb);
}

/* To be freed; NULL: there is none */
static char *read_manifest(const char *path)
{
	char *name, *text;

	if (asprintf(&name, "%s.json", path) < 0)
		return NULL;
	text = json__read_file(name);
	free(name);
	return text;
}

/* When a dump was triggered, as its manifest says; 0: it is not known */
static u64 find_trigger(const char *manifest)
{
	struct json_value value;
	char *time = NULL;
	u64 trigger = 0;

	if (manifest && json__find(manifest, "trigger_time", &value) &&
	    json_value__is_number(&value))
		time = strndup(value.text, value.len);
	if (time && parse_nsec_time(time, &trigger))
		trigger = 0;
	free(time);
	return trigger;
}

/* Ranges of time, in the syntax of --time of other commands; their ends belong to them */
static int read_ranges(struct verdict *v, const char *str, struct verdict_part **parts, u32 *nr)
{
	const struct verdict_history *h = &v->history;
	struct perf_time_interval *ranges;
	int size, found, i, err;

	evlist__set_first_sample_time(v->rec.session->evlist, h->oldest);
	evlist__set_last_sample_time(v->rec.session->evlist, h->newest);
	err = perf_time__parse_for_ranges(str, v->rec.session, &ranges, &size, &found);
	if (err)
		return err;
	*parts = calloc(found + 1, sizeof(**parts));
	for (i = 0; *parts && i < found; i++) {
		struct verdict_part *part = &(*parts)[*nr];

		part->start = max(ranges[i].start, h->oldest);
		part->end = min(ranges[i].end ?: h->newest, h->newest) + 1;
		*nr += part->start < part->end;
	}
	free(ranges);
	if (!*parts)
		return -ENOMEM;
	if (!*nr) {
		pr_err("There are no records in %s: they are from %.6f to %.6f.\n", str,
		       seconds(h->oldest), seconds(h->newest));
		return -EINVAL;
	}
	return 0;
}

static int read_choice(struct verdict *v, const struct verdict_options *o,
		       struct verdict_choice *choice)
{
	struct verdict_part *part = NULL;
	u32 nr = 0, i;
	int err = 0;

	choice->trigger = find_trigger(v->history.manifest);
	if (o->part) {
		err = read_ranges(v, o->part, &part, &nr);
		if (!err && nr > 1) {
			pr_err("--compare takes one range of time. Name those to compare it with by --against.\n");
			err = -EINVAL;
		}
		if (!err)
			choice->now = part[0];
		choice->named = true;
		free(part);
	}
	if (!err && o->against)
		err = read_ranges(v, o->against, &choice->against, &choice->nr_against);
	for (i = 0; !err && i < choice->nr_against; i++) {
		if (choice->against[i].start < choice->now.end &&
		    choice->now.start < choice->against[i].end) {
			pr_err("The ranges of --compare and --against overlap.\n");
			err = -EINVAL;
		}
	}
	return err;
}

static int judge(struct verdict *v, const struct verdict_options *o)
{
	struct verdict_choice choice = {};
	int err;

	err = read_choice(v, o, &choice);
	if (err)
		goto out_free;
	err = verdict_findings__find(&v->findings, &v->history) ?:
	      verdict_compare__run(&v->comparison, &v->history, &v->chains, &choice) ?:
	      verdict_compare__find(&v->comparison, &v->history, &v->findings) ?:
	      (o->queues ? verdict_queues__find(&v->queues, &v->history) : 0);
	if (err)
		pr_err("There is not enough memory for the findings.\n");
out_free:
	free(choice.against);
	return err;
}

/**
 * verdict__run - read a recording, and tell who held whom up, or what changed
 * @o: what is to be told
 *
 * Return: 0, or a negative errno after a message.
 */
int verdict__run(const struct verdict_options *o)
{
	struct verdict v = {};
	int err;

	err = verdict_history__init(&v.history) ?: verdict_chains__init(&v.chains, o->compare) ?:
	      verdict_stack__init();
	v.history.side_band.wanted = o->side_band;
	if (!err)
		err = verdict_history__read(&v.history, &v.chains, o->path, o->force, &v.rec);
	if (!err) {
		v.history.manifest = read_manifest(o->path);
		err = judge(&v, o);
	}
	if (!err && o->json) {
		print_json(&v, o);
	} else if (!err) {
		print_overhead(&v);
		if (o->compare)
			verdict_changes__print(&v.comparison, &v.history, &v.chains);
		else if (o->queues)
			verdict_queues__print(&v.queues, &v.history);
		else
			print_findings(&v.history, &v.findings);
		print_notes(&v.history);
	}
	verdict_queues__exit(&v.queues);
	verdict_compare__exit(&v.comparison);
	verdict_findings__exit(&v.findings);
	verdict_stack__exit();
	verdict_chains__exit(&v.chains);
	verdict_history__exit(&v.history);
	perf_session__delete(v.rec.session);
	free(v.history.manifest);
	return err;
}
