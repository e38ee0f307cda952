// SPDX-License-Identifier: GPL-2.0
/*
 * --archive: keep the programs and libraries that a dump has samples of
 *
 * The files are added to perf's build-id cache, as perf record does at its end, while
 * they are still the files that were running. From there they are packed into an archive
 * beside the dump, OUT.sample.TIME.tar.bz2, in the format of perf archive, which can
 * unpack it (perf archive --unpack). The script perf archive itself is not used: it reads
 * the dump again, omits files that are only in call chains, always returns 0, and writes
 * to the final name, so that readers could take an incomplete archive for a complete one.
 *
 * This needs time, and memory for a session, which the recorder must not spend. The
 * process that runs --on-dump executes a separate perf for it, perf record --archive -o
 * DUMP. Users can run this command as well.
 */
#include "archive.h"
#include "dump.h"
#include "files.h"
#include "../../build-id.h"
#include "../../callchain.h"
#include "../../data.h"
#include "../../debug.h"
#include "../../dso.h"
#include "../../event.h"
#include "../../evsel.h"
#include "../../header.h"
#include "../../map.h"
#include "../../map_symbol.h"
#include "../../sample.h"
#include "../../session.h"
#include "../../symbol.h"
#include "../../thread.h"
#include "../../tool.h"

#include <linux/err.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/**
 * struct contents - content of an archive
 * @names: names of files below the build-id cache, each with a NUL
 * @nr: number of programs and libraries
 * @missing: number of files that were not found
 */
struct contents {
	FILE		*names;
	unsigned int	nr;
	unsigned int	missing;
};

/* Mark the files that the dump has samples of. */

static int mark_node(struct callchain_cursor_node *node, void *data __maybe_unused)
{
	if (node->ms.map)
		dso__set_hit(map__dso(node->ms.map));
	return 0;
}

static int mark_sample(const struct perf_tool *tool, union perf_event *event,
		       struct perf_sample *sample, struct evsel *evsel, struct machine *machine)
{
	struct thread *thread;
	int err = build_id__mark_dso_hit(tool, event, sample, evsel, machine);

	if (err || !sample->callchain)
		return err;
	thread = machine__findnew_thread(machine, sample->pid, sample->tid);
	if (!thread)
		return -ENOMEM;
	/* Of a broken call chain, use the part that can be read. */
	sample__for_each_callchain_node(thread, evsel, sample, PERF_MAX_STACK_DEPTH,
					/*symbols=*/false, mark_node, NULL);
	thread__put(thread);
	return 0;
}

/* ".build-id/xx/yy" is a link to "../../DIRECTORY": pack both. */
static int list_dso(struct dso *dso, struct machine *machine __maybe_unused, void *data)
{
	static const char up[] = "../../";
	char id[SBUILD_ID_SIZE], link[PATH_MAX], target[PATH_MAX];
	struct contents *contents = data;
	ssize_t len;

	if (!dso__hit(dso) || !dso__has_build_id(dso))
		return 0;
	build_id__sprintf(dso__bid(dso), id);
	len = build_id_cache__linkname(id, link, sizeof(link)) ?
	      readlink(link, target, sizeof(target) - 1) : -1;
	if (len > 0)
		target[len] = '\0';
	if (len <= 0 || !strstarts(target, up) || access(link, R_OK)) {
		pr_debug("--archive: %s is not in the cache\n", dso__long_name(dso));
		contents->missing++;
		return 0;
	}
	contents->nr++;
	fprintf(contents->names, "%s%c%s%c", link + strlen(buildid_dir) + 1, '\0',
		target + strlen(up), '\0');
	return 0;
}

static int fill_cache(const char *path, struct contents *contents)
{
	struct perf_data data = {
		.path	= path,
		.mode	= PERF_DATA_MODE_READ,
	};
	struct perf_session *session;
	struct perf_tool tool;
	int err;

	perf_tool__init(&tool, /*ordered_events=*/true);
	tool.sample = mark_sample;
	tool.mmap = perf_event__process_mmap;
	tool.mmap2 = perf_event__process_mmap2;
	tool.comm = perf_event__process_comm;
	tool.fork = perf_event__process_fork;
	tool.exit = perf_event__process_exit;
	tool.namespaces = perf_event__process_namespaces;
	tool.attr = perf_event__process_attr;
	tool.build_id = perf_event__process_build_id;
	session = perf_session__new(&data, &tool);
	if (IS_ERR(session))
		return PTR_ERR(session);
	err = symbol__init(&session->header.env);
	if (!err)
		err = perf_session__process_events(session);
	/* A file that cannot be cached is counted as missing in the archive. */
	if (!err && !perf_session__cache_build_ids(session))
		pr_debug("--archive: all files are in %s\n", buildid_dir);
	if (!err)
		err = __perf_session__cache_build_ids(session, list_dso, contents);
	perf_session__delete(session);
	return err;
}

/* Packing */

static int run_tar(FILE *names, int fd)
{
	pid_t pid;
	int status;

	if (fflush(names) || lseek(fileno(names), 0, SEEK_SET))
		return -EIO;
	fflush(NULL);
	pid = fork();
	if (!pid) {
		dup2(fileno(names), STDIN_FILENO);
		dup2(fd, STDOUT_FILENO);
		/* This takes time, and no process waits for it: use a low priority. */
		setpriority(PRIO_PROCESS, 0, 10);
		execlp("tar", "tar", "-C", buildid_dir, "--null", "-cjT", "-", NULL);
		pr_err("--archive: cannot run tar: %m\n");
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		return -errno;
	return WIFEXITED(status) && !WEXITSTATUS(status) ? 0 : -ECHILD;
}

/* The archive gets its name when it is on disk, and is removed if its dump is gone. */
static int pack(const char *path, FILE *names)
{
	char archive[PATH_MAX], *tmp = NULL;
	int fd, err;

	if (snprintf(archive, sizeof(archive), "%s.tar.bz2", path) >= (int)sizeof(archive))
		return -ENAMETOOLONG;
	fd = dump__create_temporary(archive, &tmp);
	if (fd < 0) {
		free(tmp);
		return fd;
	}
	err = run_tar(names, fd);
	if (!err && fsync(fd))
		err = -errno;
	close(fd);
	if (!err && rename(tmp, archive))
		err = -errno;
	if (err)
		unlink(tmp);
	/* --max-files may have removed the dump in the meantime. */
	else if (access(path, F_OK))
		unlink(archive);
	free(tmp);
	return err;
}

/**
 * archive__dump - write the archive of a dump
 * @path: the dump
 *
 * Return: 0, or a negative errno after an error message.
 */
int archive__dump(const char *path)
{
	struct contents contents = { .names = tmpfile() };
	int err = contents.names ? 0 : -errno;

	if (!err)
		err = fill_cache(path, &contents);
	if (err) {
		pr_err("--archive: cannot add the files of %s to the build-id cache.\n", path);
		goto out_close;
	}
	if (contents.missing)
		pr_warning("--archive: %u files that %s has samples of do not exist or are not readable.\n",
			   contents.missing, path);
	if (!contents.nr) {
		pr_warning("--archive: nothing to pack for %s.\n", path);
		goto out_close;
	}
	err = pack(path, contents.names);
	if (err)
		pr_err("--archive: cannot write %s.tar.bz2: %s\n", path,
		       err == -ECHILD ? "tar failed" : strerror(-err));
out_close:
	if (contents.names)
		fclose(contents.names);
	return err;
}
