// SPDX-License-Identifier: GPL-2.0
/*
 * OUT.sample.TIME.json: what a dump holds and what it does not, in numbers
 *
 * One object with one member a line, in a fixed order, so that it can be read by
 * eye and by grep as well.
 */
#include "manifest.h"
#include "dump.h"
#include "files.h"
#include "../overhead.h"
#include "../trigger/cause.h"
#include "../../container.h"
#include "../../container-names.h"
#include "../../debug.h"
#include "../../event.h"
#include "../../header.h"
#include "../../json-reader.h"
#include "../../json-writer.h"
#include "../../persistent/persistent.h"
#include "../../strlist.h"

#include <api/fs/fs.h>
#include <linux/kernel.h>
#include <linux/time64.h>
#include <linux/zalloc.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timex.h>
#include <sys/utsname.h>
#include <unistd.h>

static void write_machine(struct json_writer *w)
{
	struct utsname uts;
	char *boot_id = NULL;
	size_t len;

	if (!uname(&uts)) {
		json_writer__string(w, "host", uts.nodename);
		json_writer__string(w, "kernel", uts.release);
	}
	if (!procfs__read_str("sys/kernel/random/boot_id", &boot_id, &len)) {
		boot_id[strcspn(boot_id, "\n")] = '\0';
		json_writer__string(w, "boot_id", boot_id);
		free(boot_id);
	}
}

/*
 * How far the wall clock may be off, as the daemon that sets it has told the kernel. Without
 * such a daemon this is not known.
 */
static void write_clock_error(struct json_writer *w)
{
	struct timex tx = {};

	if (adjtimex(&tx) >= 0 && !(tx.status & STA_UNSYNC))
		json_writer__seconds(w, "clock_error", (u64)tx.maxerror * NSEC_PER_USEC, 6);
}

static void write_container(struct json_writer *w, const char *cgroup)
{
	struct container_names names;
	struct container c;

	if (!container__of_cgroup(&c, cgroup))
		return;
	if (*c.id)
		json_writer__string(w, "trigger_container", c.id);
	if (*c.pod)
		json_writer__string(w, "trigger_pod_uid", c.pod);
	if (!*c.id || !container_names__read(&names, "", c.id))
		return;
	json_writer__known(w, "trigger_container_name", names.name);
	json_writer__known(w, "trigger_pod", names.pod);
	json_writer__known(w, "trigger_pod_namespace", names.pod_namespace);
	container_names__exit(&names);
}

/* The runtimes forget the names with the container, so they stay here. */
static void write_containers(struct json_writer *w, struct strlist *ids)
{
	struct container_names names;
	struct str_node *id;
	bool any = false;

	if (!ids)
		return;
	strlist__for_each_entry(id, ids) {
		if (!container_names__read(&names, "", id->s))
			continue;
		if (!any)
			json_writer__begin_object(w, "containers", JSON_STYLE__LINES);
		any = true;
		json_writer__begin_object(w, id->s, JSON_STYLE__PADDED);
		json_writer__known(w, "name", names.name);
		json_writer__known(w, "pod", names.pod);
		json_writer__known(w, "pod_namespace", names.pod_namespace);
		json_writer__end(w);
		container_names__exit(&names);
	}
	if (any)
		json_writer__end(w);
}

/* What is not known is left out. */
static void write_cause(struct json_writer *w, const struct flight_cause *cause)
{
	if (!cause)
		return;
	if (cause->unit) {
		json_writer__number(w, "value", cause->value);
		if (cause->threshold)
			json_writer__number(w, "threshold", cause->threshold);
		json_writer__string(w, "unit", cause->unit);
	}
	if (cause->pid)
		json_writer__signed(w, "trigger_pid", cause->pid);
	if (*cause->comm)
		json_writer__string(w, "trigger_comm", cause->comm);
	if (*cause->cgroup) {
		json_writer__string(w, "trigger_cgroup", cause->cgroup);
		write_container(w, cause->cgroup);
	}
}

static u64 max_sample_rate(void)
{
	int rate;

	return sysctl__read_int("kernel/perf_event_max_sample_rate", &rate) ? 0 : rate;
}

static void write_cpu(struct json_writer *w, int cpu, const struct manifest_cpu *c)
{
	json_writer__begin_object(w, NULL, JSON_STYLE__PADDED);
	json_writer__number(w, "cpu", cpu);
	json_writer__seconds(w, "oldest", c->oldest, 9);
	json_writer__seconds(w, "newest", c->newest, 9);
	json_writer__number(w, "events", c->events);
	json_writer__number(w, "lost", c->lost);
	json_writer__number(w, "throttled", c->throttled);
	json_writer__number(w, "given_up", c->given_up);
	json_writer__string(w, "way", c->way);
	json_writer__end(w);
}

static void write_cpus(struct json_writer *w, const struct manifest *m)
{
	json_writer__begin_array(w, "cpus", JSON_STYLE__LINES);
	for (int i = 0; i < m->nr_cpus; i++) {
		if (m->cpus[i].way)
			write_cpu(w, i, &m->cpus[i]);
	}
	json_writer__end(w);
}

static void write_share(struct json_writer *w, const struct manifest_share *share)
{
	json_writer__begin_object(w, NULL, JSON_STYLE__PADDED);
	json_writer__number(w, "cgroup", share->id);
	json_writer__known(w, "path", share->path);
	json_writer__seconds(w, "complete_since", share->complete_since, 9);
	json_writer__seconds(w, "oldest", share->oldest, 9);
	json_writer__seconds(w, "newest", share->newest, 9);
	json_writer__number(w, "events", share->events);
	json_writer__number(w, "bytes", share->bytes);
	json_writer__end(w);
}

static void write_shares(struct json_writer *w, const struct manifest *m)
{
	if (!m->shares)
		return;
	json_writer__seconds(w, "complete_since", m->complete_since, 9);
	json_writer__seconds(w, "names_since", m->names_since, 9);
	json_writer__begin_array(w, "cgroups", JSON_STYLE__LINES);
	for (u32 i = 0; i < m->nr_shares; i++) {
		if (m->shares[i].events)
			write_share(w, &m->shares[i]);
	}
	json_writer__end(w);
}

/* A frozen session holds what came before the freeze; later records are only counted. */
static void write_session(struct json_writer *w, const struct perf_persistent_session_info *info)
{
	if (!info->id)
		return;
	json_writer__string(w, "session", info->name);
	if (!info->freeze_time)
		return;
	json_writer__seconds(w, "frozen", info->freeze_time, 9);
	json_writer__string(w, "frozen_by", persistent__freeze_reason(info->freeze_reason));
	json_writer__number(w, "frozen_lost", info->lost);
}

static void note_path(struct manifest *m, const union perf_event *event)
{
	for (u32 i = 0; i < m->nr_shares; i++) {
		struct manifest_share *share = &m->shares[i];

		if (share->events && share->id == event->cgroup.id && !share->path)
			share->path = strdup(event->cgroup.path);
	}
}

/**
 * manifest__note - a record is in the dump
 * @m: what to tell
 * @event: the record
 *
 * Without memory, the names of a container are not told.
 */
void manifest__note(struct manifest *m, const union perf_event *event)
{
	struct container c;

	if (event->header.type != PERF_RECORD_CGROUP)
		return;
	note_path(m, event);
	if (!container__of_cgroup(&c, event->cgroup.path) || !*c.id)
		return;
	if (!m->containers)
		m->containers = strlist__new(NULL, NULL);
	if (m->containers)
		strlist__add(m->containers, c.id);
}

/**
 * manifest__write - write it as JSON
 * @m: what to tell
 * @f: where
 *
 * Return: 0 or a negative errno.
 */
int manifest__write(const struct manifest *m, FILE *f)
{
	struct json_writer w;

	json_writer__init(&w, f);
	json_writer__begin_object(&w, NULL, JSON_STYLE__LINES);
	json_writer__string(&w, "file", m->file);
	json_writer__number(&w, "schema", MANIFEST_SCHEMA);
	json_writer__string(&w, "perf_version", perf_version_string);
	json_writer__string(&w, "time", m->time);
	json_writer__seconds(&w, "trigger_time", m->trigger_time, 9);
	write_clock_error(&w);
	write_machine(&w);
	json_writer__string(&w, "trigger", m->trigger);
	json_writer__string(&w, "reason", m->reason);
	write_cause(&w, m->cause);
	json_writer__string(&w, "action", m->action);
	json_writer__number(&w, "swallowed", m->swallowed);
	json_writer__seconds(&w, "window_asked", m->window_asked, 9);
	json_writer__seconds(&w, "window", m->newest - m->oldest, 9);
	json_writer__seconds(&w, "oldest", m->oldest, 9);
	json_writer__seconds(&w, "newest", m->newest, 9);
	json_writer__number(&w, "events", m->events);
	json_writer__number(&w, "lost", m->lost);
	json_writer__number(&w, "throttled", m->throttled);
	json_writer__number(&w, "given_up", m->given_up);
	json_writer__number(&w, "unresolved", m->unresolved);
	if (m->defers)
		json_writer__number(&w, "half_chains", m->half_chains);
	json_writer__number(&w, "sideband_dropped", m->sideband_dropped);
	json_writer__number(&w, "tasks", m->tasks);
	json_writer__string(&w, "self", m->self);
	json_writer__number(&w, "self_events", m->self_events);
	json_writer__number(&w, "self_dropped", m->self_dropped);
	if (*m->cpus_left_out)
		json_writer__string(&w, "cpus_left_out", m->cpus_left_out);
	write_session(&w, m->session);
	flight_overhead__print(m->overhead, &w);
	json_writer__number(&w, "max_sample_rate", max_sample_rate());
	json_writer__number(&w, "bytes", m->bytes);
	json_writer__number(&w, "raw", m->raw);
	json_writer__number(&w, "stored", m->stored);
	write_shares(&w, m);
	write_cpus(&w, m);
	write_containers(&w, m->containers);
	json_writer__end(&w);
	return ferror(f) || fflush(f) ? -EIO : 0;
}

void manifest__exit(struct manifest *m)
{
	free(m->cpus);
	for (u32 i = 0; i < m->nr_shares; i++)
		free(m->shares[i].path);
	free(m->shares);
	strlist__delete(m->containers);
}

/* A manifest is replaced as a whole, like a new one. */
static int set_swallowed(const char *path, u64 swallowed)
{
	char *text = json__read_file(path), *tmp = NULL;
	struct json_value old;
	FILE *f;
	int err;

	if (!text)
		return -errno;
	if (!json__find(text, "swallowed", &old)) {
		err = -EBADMSG;
		goto out_free;
	}
	err = dump__create_temporary(path, &tmp);
	if (err < 0)
		goto out_free;
	f = fdopen(err, "w");
	if (!f) {
		close(err);
		err = -ENOMEM;
		goto out_unlink;
	}
	fprintf(f, "%.*s%" PRIu64 "%s", (int)(old.text - text), text, swallowed,
		old.text + old.len);
	err = fflush(f) || ferror(f) || fsync(fileno(f)) ? -EIO : 0;
	if (fclose(f))
		err = -EIO;
	if (!err && rename(tmp, path))
		err = -errno;
out_unlink:
	if (err)
		unlink(tmp);
out_free:
	free(text);
	free(tmp);
	return err;
}

/**
 * last_manifest__set - the manifest that is corrected from now on
 * @lm: the one before, or all zeros
 * @dump: the dump, whose name the manifest has; NULL: there is none
 * @swallowed: hits that it tells of
 */
void last_manifest__set(struct last_manifest *lm, const char *dump, u64 swallowed)
{
	free(lm->path);
	*lm = (struct last_manifest) { .swallowed = swallowed };
	if (dump && asprintf(&lm->path, "%s.json", dump) < 0)
		lm->path = NULL;
}

/**
 * last_manifest__correct - the dump stands for more hits than it told of
 * @lm: a manifest; if it is not wrong there is nothing to correct
 *
 * It reads and writes the disk.
 */
void last_manifest__correct(const struct last_manifest *lm)
{
	int err = lm->path && lm->wrong ? set_swallowed(lm->path, lm->swallowed) : 0;

	if (err)
		pr_debug("cannot correct %s: %s\n", lm->path, strerror(-err));
}
