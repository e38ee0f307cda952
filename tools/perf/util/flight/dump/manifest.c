// SPDX-License-Identifier: GPL-2.0
/*
 * OUT.sample.TIME.json: what a dump holds and what it does not, in numbers
 *
 * One object with one member a line, in a fixed order, so that it can be read by
 * eye and by grep as well.
 */
#include "manifest.h"
#include "dump.h"
#include "../json.h"

#include <api/fs/fs.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/time64.h>
#include <linux/zalloc.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#define SWALLOWED	"  \"swallowed\": "

static void write_string(FILE *f, const char *key, const char *value)
{
	fprintf(f, "  \"%s\": ", key);
	json__put_string(f, value);
	fprintf(f, ",\n");
}

static void write_number(FILE *f, const char *key, u64 value)
{
	fprintf(f, "  \"%s\": %" PRIu64 ",\n", key, value);
}

static void write_seconds(FILE *f, const char *key, u64 ns)
{
	fprintf(f, "  \"%s\": %" PRIu64 ".%09" PRIu64 ",\n", key, ns / NSEC_PER_SEC,
		ns % NSEC_PER_SEC);
}

static void write_machine(FILE *f)
{
	struct utsname uts;
	char *boot_id = NULL;
	size_t len;

	if (!uname(&uts)) {
		write_string(f, "host", uts.nodename);
		write_string(f, "kernel", uts.release);
	}
	if (!procfs__read_str("sys/kernel/random/boot_id", &boot_id, &len)) {
		boot_id[strcspn(boot_id, "\n")] = '\0';
		write_string(f, "boot_id", boot_id);
		free(boot_id);
	}
}

static void write_cpu(FILE *f, int cpu, const struct manifest_cpu *c, bool first)
{
	fprintf(f, "%s\n    { \"cpu\": %d, \"oldest\": %" PRIu64 ".%09" PRIu64
		", \"newest\": %" PRIu64 ".%09" PRIu64 ", \"events\": %" PRIu64
		", \"lost\": %" PRIu64 ", \"throttled\": %" PRIu64 ", \"given_up\": %" PRIu64
		", \"way\": \"%s\" }", first ? "" : ",", cpu,
		c->oldest / NSEC_PER_SEC, c->oldest % NSEC_PER_SEC,
		c->newest / NSEC_PER_SEC, c->newest % NSEC_PER_SEC,
		c->events, c->lost, c->throttled, c->given_up, c->way);
}

static void write_cpus(FILE *f, const struct manifest *m)
{
	bool first = true;

	fprintf(f, "  \"cpus\": [");
	for (int i = 0; i < m->nr_cpus; i++) {
		if (!m->cpus[i].way)
			continue;
		write_cpu(f, i, &m->cpus[i], first);
		first = false;
	}
	fprintf(f, "\n  ]\n");
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
	fprintf(f, "{\n");
	write_string(f, "file", m->file);
	write_string(f, "time", m->time);
	write_machine(f);
	write_string(f, "trigger", m->trigger);
	write_string(f, "reason", m->reason);
	write_string(f, "action", m->action);
	fprintf(f, SWALLOWED "%" PRIu64 ",\n", m->swallowed);
	write_seconds(f, "window_asked", m->window_asked);
	write_seconds(f, "window", m->newest - m->oldest);
	write_seconds(f, "oldest", m->oldest);
	write_seconds(f, "newest", m->newest);
	write_number(f, "events", m->events);
	write_number(f, "lost", m->lost);
	write_number(f, "throttled", m->throttled);
	write_number(f, "given_up", m->given_up);
	write_number(f, "unresolved", m->unresolved);
	write_number(f, "tasks", m->tasks);
	write_number(f, "bytes", m->bytes);
	write_number(f, "raw", m->raw);
	write_number(f, "stored", m->stored);
	write_cpus(f, m);
	fprintf(f, "}\n");
	return ferror(f) || fflush(f) ? -EIO : 0;
}

/**
 * manifest__set_swallowed - say how many hits were swallowed since
 * @path: a manifest
 * @swallowed: how many
 *
 * It is replaced as a whole, like a new one.
 *
 * Return: 0 or a negative errno.
 */
int manifest__set_swallowed(const char *path, u64 swallowed)
{
	FILE *from = fopen(path, "r"), *to;
	char *line = NULL, *tmp = NULL;
	size_t room = 0;
	int err;

	if (!from)
		return -errno;
	err = dump__create_temporary(path, &tmp);
	if (err < 0)
		goto out_close;
	to = fdopen(err, "w");
	if (!to) {
		close(err);
		err = -ENOMEM;
		goto out_unlink;
	}
	while (getline(&line, &room, from) > 0) {
		if (strstarts(line, SWALLOWED))
			fprintf(to, SWALLOWED "%" PRIu64 ",\n", swallowed);
		else
			fputs(line, to);
	}
	err = ferror(from) || fflush(to) || ferror(to) || fsync(fileno(to)) ? -EIO : 0;
	if (fclose(to))
		err = -EIO;
	if (!err && rename(tmp, path))
		err = -errno;
out_unlink:
	if (err)
		unlink(tmp);
out_close:
	free(line);
	free(tmp);
	fclose(from);
	return err;
}
