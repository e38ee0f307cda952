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
 * Code that a JIT compiler has made is in no file, and its names are in /tmp/perf-PID.map,
 * which the process itself has written. It may outlive the process, but not the machine, and
 * the pid is that of another process some day. So it is packed as well, as tmp/perf-PID.map.
 * Any user may have written it: a link is not followed, and a file that is too large is left
 * out. It may grow or go while it is packed, which tar would take for a failure: a copy is
 * packed.
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
#include "../../util.h"

#include <internal/lib.h>
#include <linux/err.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* At most so many JIT maps, each at most this large, are packed. */
#define MAX_JIT_MAPS		1024
#define MAX_JIT_MAP_SIZE	(64 * 1024 * 1024L)

/**
 * struct contents - content of an archive
 * @names: names of files below the build-id cache, each with a NUL
 * @jit_dir: directory with copies of maps of JIT compilers, or ""
 * @jit_maps: their names below it
 * @nr_jit_maps: number of @jit_maps
 * @nr: number of programs and libraries
 * @missing: number of files that were not found
 */
struct contents {
	FILE		*names;
	char		jit_dir[32];
	char		*jit_maps[MAX_JIT_MAPS];
	unsigned int	nr_jit_maps;
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

/* Copies of /tmp/perf-PID.map are jit_dir/tmp/perf-PID.map. */
static int make_jit_dir(struct contents *contents)
{
	char path[sizeof(contents->jit_dir) + 8];

	if (*contents->jit_dir)
		return 0;
	snprintf(contents->jit_dir, sizeof(contents->jit_dir), "/tmp/perf-archive.XXXXXX");
	if (!mkdtemp(contents->jit_dir)) {
		*contents->jit_dir = '\0';
		return -errno;
	}
	snprintf(path, sizeof(path), "%s/tmp", contents->jit_dir);
	return mkdir(path, 0700) ? -errno : 0;
}

static int copy_jit_map(int from, const char *path, struct contents *contents)
{
	char copy[PATH_MAX], buf[BUFSIZ];
	size_t left = MAX_JIT_MAP_SIZE;
	ssize_t len;
	int fd, err;

	err = make_jit_dir(contents);
	if (err)
		return err;
	snprintf(copy, sizeof(copy), "%s%s", contents->jit_dir, path);
	fd = open(copy, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return errno == EEXIST ? 0 : -errno;
	while (!err && (len = read(from, buf, min(left, sizeof(buf)))) > 0) {
		err = writen(fd, buf, len) == len ? 0 : -EIO;
		left -= len;
	}
	close(fd);
	if (err)
		return err;
	contents->jit_maps[contents->nr_jit_maps] = strdup(path + 1);
	if (!contents->jit_maps[contents->nr_jit_maps])
		return -ENOMEM;
	contents->nr_jit_maps++;
	return 0;
}

/* Code in no file has no map either, if its compiler was not told to write one. */
static int add_jit_map(const char *path, struct contents *contents)
{
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC), err = 0;
	struct stat st;

	if (fd < 0)
		return 0;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		pr_debug("--archive: %s is no file\n", path);
	} else if (st.st_size > MAX_JIT_MAP_SIZE || contents->nr_jit_maps == MAX_JIT_MAPS) {
		pr_debug("--archive: %s is too large, or one too many\n", path);
		contents->missing++;
	} else {
		err = copy_jit_map(fd, path, contents);
	}
	close(fd);
	return err;
}

static void free_jit_maps(struct contents *contents)
{
	for (unsigned int i = 0; i < contents->nr_jit_maps; i++)
		free(contents->jit_maps[i]);
	if (*contents->jit_dir && rm_rf(contents->jit_dir))
		pr_debug("--archive: cannot remove %s\n", contents->jit_dir);
}

/* "/tmp/perf-PID.map", as perf names the memory of a process that no file is mapped to. */
static bool is_jit_map(const char *path)
{
	size_t digits;

	if (!strstarts(path, "/tmp/perf-"))
		return false;
	path += strlen("/tmp/perf-");
	digits = strspn(path, "0123456789");
	return digits && !strcmp(path + digits, ".map");
}

/* ".build-id/xx/yy" is a link to "../../DIRECTORY": pack both. */
static int list_dso(struct dso *dso, struct machine *machine __maybe_unused, void *data)
{
	static const char up[] = "../../";
	char id[SBUILD_ID_SIZE], link[PATH_MAX], target[PATH_MAX];
	struct contents *contents = data;
	ssize_t len;

	if (dso__hit(dso) && is_jit_map(dso__long_name(dso)))
		return add_jit_map(dso__long_name(dso), contents);
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

static void exec_tar(const struct contents *contents)
{
	const char *argv[MAX_JIT_MAPS + 16] = {
		"tar", "-C", buildid_dir, "--null", "-cjT", "-",
	};
	int n = 6;

	if (contents->nr_jit_maps) {
		argv[n++] = "-C";
		argv[n++] = contents->jit_dir;
	}
	for (unsigned int i = 0; i < contents->nr_jit_maps; i++)
		argv[n++] = contents->jit_maps[i];
	execvp("tar", (char **)argv);
}

static int run_tar(const struct contents *contents, int fd)
{
	FILE *names = contents->names;
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
		exec_tar(contents);
		pr_err("--archive: cannot run tar: %m\n");
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		return -errno;
	return WIFEXITED(status) && !WEXITSTATUS(status) ? 0 : -ECHILD;
}

/* The archive gets its name when it is on disk, and is removed if its dump is gone. */
static int pack(const char *path, const struct contents *contents)
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
	err = run_tar(contents, fd);
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
	if (!contents.nr && !contents.nr_jit_maps) {
		pr_warning("--archive: nothing to pack for %s.\n", path);
		goto out_close;
	}
	err = pack(path, &contents);
	if (err)
		pr_err("--archive: cannot write %s.tar.bz2: %s\n", path,
		       err == -ECHILD ? "tar failed" : strerror(-err));
out_close:
	free_jit_maps(&contents);
	if (contents.names)
		fclose(contents.names);
	return err;
}
