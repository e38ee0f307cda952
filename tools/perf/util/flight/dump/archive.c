// SPDX-License-Identifier: GPL-2.0
/*
 * --archive: keep the programs and libraries that a dump has samples of
 *
 * The files are added to the store of symbols beside the dump (see symbol-store.c), as
 * perf record adds files to the build-id cache at its end, while they are still the files
 * that were running. The store has a file once, whatever the number of dumps. The list of
 * the dump, DUMP.symbols, names what it needs. It gets its name when all of this is on disk.
 * The script perf archive is not used: it reads the dump again, packs the same files for
 * each dump, omits files that are only in call chains, and always returns 0.
 *
 * A file that is gone, but is in the user's build-id cache, is taken from there. The cache
 * itself is not changed. The names of the kernel are those of /proc/kallsyms, which has no
 * build-id: they are taken only if the dump is of the kernel that runs.
 *
 * Code that a JIT compiler has made is in no file, and its names are in /tmp/perf-PID.map,
 * which the process itself has written. It may outlive the process, but not the machine, and
 * the pid is that of another process some day. So a copy is kept as well. Any user may have
 * written it: a link is not followed, and a file that is too large is left out.
 *
 * This needs time, and memory for a session, which the recorder must not spend. The
 * process that runs --on-dump executes a separate perf for it, perf record --archive -o
 * DUMP. Users can run this command as well.
 */
#include "archive.h"
#include "dump.h"
#include "files.h"
#include "symbol-store.h"
#include "../../base-api.h"
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
#include "../../vdso.h"

#include <internal/lib.h>
#include <linux/err.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/zalloc.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* At most so many JIT maps, each at most this large, are kept. */
#define MAX_JIT_MAPS		1024
#define MAX_JIT_MAP_SIZE	(64 * 1024 * 1024L)

/* A disk with less room is the likely reason for a file that could not be written. */
#define NEARLY_FULL		(64 * 1024 * 1024UL)

/**
 * struct contents - what a dump needs
 * @list: its list
 * @store: the directory of the store
 * @cache: the user's build-id cache
 * @kernel: build-id of the kernel that runs, or ""
 * @nr_jit_maps: number of maps of JIT compilers
 * @nr: number of programs and libraries
 * @missing: number of files that were not found
 * @err: an error that is none of a missing file
 * @stopped: adding files to the store has stopped at one
 * @dropped: that one has been left out
 */
struct contents {
	FILE		*list;
	char		store[PATH_MAX];
	char		cache[PATH_MAX];
	char		kernel[SBUILD_ID_SIZE];
	unsigned int	nr_jit_maps;
	unsigned int	nr;
	unsigned int	missing;
	int		err;
	bool		stopped;
	bool		dropped;
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
	int err = sample__mark_dso_hit(tool, event, sample, evsel, machine);

	if (err || !sample->callchain)
		return err;
	thread = machine__findnew_thread(machine, sample->pid, sample->tid);
	if (!thread)
		return -ENOMEM;
	/* Of a broken call chain, use the part that can be read. */
	sample__for_each_node(thread, evsel, sample, PERF_MAX_STACK_DEPTH, /*symbols=*/false,
			      mark_node, NULL);
	thread__put(thread);
	return 0;
}

DEFINE_TOOL_SAMPLE(mark_sample)

/* A map grows while its process lives: the copy is named by its version. */
static int copy_jit_map(int from, const struct stat *st, const char *path,
			struct contents *contents)
{
	char dir[PATH_MAX], copy[PATH_MAX], *tmp = NULL, buf[BUFSIZ];
	size_t left = MAX_JIT_MAP_SIZE;
	int fd, err = 0;
	ssize_t nr = 0;

	if (snprintf(dir, sizeof(dir), "%s/jit/%llx-%llx.%lx-%llx", contents->store,
		     (unsigned long long)st->st_ino, (unsigned long long)st->st_mtim.tv_sec,
		     st->st_mtim.tv_nsec, (unsigned long long)st->st_size) >= (int)sizeof(dir) ||
	    snprintf(copy, sizeof(copy), "%s/%s", dir, path + strlen("/tmp/")) >=
	    (int)sizeof(copy))
		return -ENAMETOOLONG;
	if (mkdir_p(dir, 0755))
		return -errno;
	fd = access(copy, F_OK) ? dump__create_temporary(copy, &tmp) : -1;
	if (tmp && fd < 0)
		err = fd;
	while (fd >= 0 && !err && (nr = read(from, buf, min(left, sizeof(buf)))) > 0) {
		err = writen(fd, buf, nr) == nr ? 0 : -errno;
		left -= nr;
	}
	if (fd >= 0 && !err && (nr < 0 || fsync(fd) || rename(tmp, copy)))
		err = -errno;
	if (fd >= 0 && err)
		unlink(tmp);
	if (fd >= 0)
		close(fd);
	free(tmp);
	if (err)
		return err;
	fprintf(contents->list, "%s\n", copy + strlen(contents->store) + 1);
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
		err = copy_jit_map(fd, &st, path, contents);
	}
	close(fd);
	return err;
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

/* Return whether the store, or @dir, has the file of a build-id, and return its name. */
static bool has_file(const char *dir, const char *id, const char *name, char *path, size_t size)
{
	char found[SBUILD_ID_SIZE];

	if (snprintf(path, size, "%s/.build-id/%.2s/%s/%s", dir, id, id + 2, name) >= (int)size ||
	    access(path, R_OK))
		return false;
	/* One that a crash of the machine has cut off may have no build-id. */
	if (strcmp(name, "elf"))
		return true;
	return filename__snprintf_build_id(path, found, sizeof(found)) > 0 && !strcmp(found, id);
}

static const char *file_of(struct dso *dso)
{
	if (dso__is_kallsyms(dso) || dso__is_kcore(dso))
		return "kallsyms";
	return dso__is_vdso(dso) ? "vdso" : "elf";
}

/* Synchronize what has just been added; what the system has had for long is clean. */
static int sync_file(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), err = 0;

	if (fd < 0)
		return -errno;
	if (fsync(fd))
		err = -errno;
	close(fd);
	return err;
}

static int list_dso(struct dso *dso, const char *id, struct contents *contents)
{
	char path[PATH_MAX];
	int err;

	if (!has_file(contents->store, id, file_of(dso), path, sizeof(path)))
		return -ENOENT;
	err = sync_file(path);
	if (err)
		return err;
	RC_CHK_ACCESS(dso)->hit = 0;
	contents->nr++;
	fprintf(contents->list, ".build-id/%.2s/%s\n", id, id + 2);
	return 0;
}

/*
 * List what the store has, so that it is not added again under another name, and remove
 * what it has in part. The names of another kernel than the one that runs are not here.
 */
static int list_known(struct dso *dso, struct machine *machine __maybe_unused, void *data)
{
	struct contents *contents = data;
	char id[SBUILD_ID_SIZE];

	if (!dso__hit(dso) || !dso__has_build_id(dso))
		return 0;
	build_id__snprintf(dso__bid(dso), id, sizeof(id));
	if (!list_dso(dso, id, contents))
		return 0;
	if (!strcmp(file_of(dso), "kallsyms") && strcmp(id, contents->kernel)) {
		pr_debug("--archive: %s is of another kernel\n", dso__long_name(dso));
		RC_CHK_ACCESS(dso)->hit = 0;
		contents->missing++;
	} else if (build_id_cache__cached(id) && build_id_cache__remove_s(id)) {
		pr_debug("--archive: cannot remove what there is of %s\n", id);
	}
	return 0;
}

/*
 * Why the store does not have the file of @dso: it is gone (-ENOENT), or it could not be
 * written.
 */
static int why_missing(struct dso *dso, const char *id, const struct contents *contents)
{
	const char *path = dso__long_name(dso);
	char found[SBUILD_ID_SIZE];
	struct statvfs fs;

	if (strcmp(file_of(dso), "kallsyms") &&
	    (filename__snprintf_build_id(path, found, sizeof(found)) <= 0 || strcmp(found, id)))
		return -ENOENT;
	/* The functions of the cache do not return it. */
	return !statvfs(contents->store, &fs) && fs.f_bavail > NEARLY_FULL / fs.f_bsize ?
	       -EIO : -ENOSPC;
}

/* List what has been added, and take from the user's cache what is nowhere else. */
static int list_added(struct dso *dso, struct machine *machine __maybe_unused, void *data)
{
	struct contents *contents = data;
	char id[SBUILD_ID_SIZE], path[PATH_MAX];
	int err;

	if (dso__hit(dso) && is_jit_map(dso__long_name(dso))) {
		err = add_jit_map(dso__long_name(dso), contents);
		RC_CHK_ACCESS(dso)->hit = 0;
		goto out;
	}
	if (!dso__hit(dso) || !dso__has_build_id(dso))
		return 0;
	build_id__snprintf(dso__bid(dso), id, sizeof(id));
	err = list_dso(dso, id, contents);
	if (err != -ENOENT)
		goto out;
	/* It may come behind the one at which adding has stopped: try again. */
	if (contents->dropped)
		return 0;
	contents->dropped = contents->stopped;
	if (!strcmp(file_of(dso), "elf") &&
	    has_file(contents->cache, id, "elf", path, sizeof(path)) &&
	    !__build_id_cache__add_s(id, path, NULL, false, false, dso__long_name(dso), NULL))
		err = list_dso(dso, id, contents);
	if (err != -ENOENT)
		goto out;
	RC_CHK_ACCESS(dso)->hit = 0;
	err = why_missing(dso, id, contents);
	if (err == -ENOENT) {
		pr_debug("--archive: there is no file of %s\n", dso__long_name(dso));
		contents->missing++;
		err = 0;
	}
out:
	if (err)
		contents->err = err;
	return err;
}

/* Adding stops at the first file that cannot be added: leave that one out, and go on. */
static int fill_store(struct perf_session *session, struct contents *contents)
{
	if (__perf_session__cache_build_ids(session, list_known, contents))
		return -EIO;
	do {
		contents->dropped = false;
		contents->stopped = perf_session__cache_build_ids(session);
		if (__perf_session__cache_build_ids(session, list_added, contents))
			return contents->err ?: -EIO;
	} while (contents->dropped);
	return 0;
}

static int add_files(const char *path, struct contents *contents)
{
	struct perf_data data = {
		.path	= path,
		.mode	= PERF_DATA_MODE_READ,
	};
	struct perf_session *session;
	struct perf_tool tool;
	int err;

	perf_tool__init(&tool, /*ordered_events=*/true);
	tool.sample = mark_sample__of_tool;
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
	if (!err)
		err = fill_store(session, contents);
	perf_session__delete(session);
	return err;
}

/* The list gets its name when it is on disk, and is removed if its dump is gone. */
static int write_list(const char *path, char *tmp, struct contents *contents)
{
	char list[PATH_MAX];
	int err = 0;

	if (snprintf(list, sizeof(list), "%s" SYMBOL_LIST, path) >= (int)sizeof(list))
		return -ENAMETOOLONG;
	if (fflush(contents->list) || ferror(contents->list) || fsync(fileno(contents->list)) ||
	    rename(tmp, list))
		err = -errno ?: -EIO;
	/* --max-files may have removed the dump in the meantime. */
	if (!err && access(path, F_OK))
		unlink(list);
	return err;
}

static FILE *create_list(const char *path, char **tmp)
{
	char list[PATH_MAX];
	FILE *f;
	int fd;

	if (snprintf(list, sizeof(list), "%s" SYMBOL_LIST, path) >= (int)sizeof(list)) {
		errno = ENAMETOOLONG;
		return NULL;
	}
	fd = dump__create_temporary(list, tmp);
	if (fd < 0) {
		errno = -fd;
		return NULL;
	}
	f = fdopen(fd, "w");
	if (!f)
		close(fd);
	return f;
}

static void tell(const char *path, const struct contents *contents)
{
	if (contents->missing)
		pr_warning("--archive: %u files that %s has samples of do not exist or are not readable.\n",
			   contents->missing, path);
	if (!contents->nr && !contents->nr_jit_maps)
		pr_warning("--archive: there are no files for %s.\n", path);
}

/*
 * The store is the build-id cache meanwhile. Its name begins at the root, because containers
 * are entered to read their files.
 */
static int fill(const char *path, struct contents *contents)
{
	char *tmp = NULL, *store = realpath(contents->store, NULL);
	int err = 0;

	if (!store)
		return -errno;
	snprintf(contents->store, sizeof(contents->store), "%s", store);
	free(store);
	snprintf(contents->cache, sizeof(contents->cache), "%s", buildid_dir);
	if (sysfs__snprintf_build_id(NULL, contents->kernel, sizeof(contents->kernel)) < 0)
		contents->kernel[0] = '\0';
	contents->list = create_list(path, &tmp);
	if (!contents->list) {
		err = -errno;
		goto out;
	}
	set_buildid_dir(contents->store);
	err = add_files(path, contents);
	set_buildid_dir(contents->cache);
	if (!err)
		err = write_list(path, tmp, contents);
	if (err)
		unlink(tmp);
	fclose(contents->list);
out:
	free(tmp);
	return err;
}

/**
 * archive__dump - keep the files that a dump has samples of
 * @path: the dump
 *
 * Return: 0, or a negative errno after an error message.
 */
int archive__dump(const char *path)
{
	struct contents *contents = zalloc(sizeof(*contents));
	int err, fd;

	if (!contents)
		return -ENOMEM;
	fd = symbol_store__open(path, contents->store, sizeof(contents->store));
	if (fd == -EPERM) {
		pr_err("--archive: %s is no directory that belongs to this user and that no other may change. Remove it, or write the dumps to another directory.\n",
		       contents->store);
	} else if (fd < 0) {
		pr_err("--archive: cannot create or open %s: %s\n", contents->store,
		       strerror(-fd));
	}
	if (fd < 0) {
		free(contents);
		return fd;
	}
	err = fill(path, contents);
	if (err)
		pr_err("--archive: cannot keep the files of %s in %s: %s\n", path,
		       contents->store, strerror(-err));
	else
		tell(path, contents);
	symbol_store__close(fd, path, contents->store);
	free(contents);
	return err;
}
