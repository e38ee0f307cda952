// SPDX-License-Identifier: GPL-2.0
/*
 * Ask debuginfod for a file that is not here
 *
 * A recording that is read on another machine, or after an upgrade, has build-ids of files
 * that are gone. If DEBUGINFOD_URLS is set, servers of debuginfod are asked for such a file
 * when its symbols are needed, as elfutils and gdb do. It is added to the build-id cache, so
 * it is fetched once. If it is stripped, its debug file is fetched as well.
 *
 * libdebuginfod is loaded when it is needed, as elfutils does: linked to perf, it would load
 * a client of HTTP with all its libraries into each perf that starts.
 *
 * A server that is down must not hold up each file: if there is no answer within
 * DEBUGINFOD_TIMEOUT (10 s), or no connection, no server is asked again by this process,
 * and the user is told.
 */
#include "base-api.h"
#include "fetch-dso.h"
#include "build-id.h"
#include "copyfile.h"
#include "debug.h"
#include "dso.h"
#include "mutex.h"
#include "namespaces.h"
#include "time-utils.h"

#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/time64.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#ifdef HAVE_LIBELF_SUPPORT
#include <gelf.h>
#include <libelf.h>
#endif

#define LIBRARY		"libdebuginfod.so.1"
#define DEFAULT_TIMEOUT	10

/* The progress is a number of bytes if it is larger, and else may be one of attempts. */
#define MANY_ATTEMPTS	100000

/**
 * struct fetcher - the library, and how asking has gone so far
 * @lock: held while a server is asked
 * @begin, @end, @find_executable, @find_debuginfo, @set_progress: see elfutils/debuginfod.h
 * @ready: the functions are there
 * @given_up: no server is asked any more
 * @timeout: seconds to wait for an answer
 * @asked: when the last answer came, or the server was asked
 * @progress: bytes that had come by then
 * @has_timed_out: the server was given up
 */
struct fetcher {
	struct mutex	lock; /* of all members */
	void		*(*begin)(void);
	void		(*end)(void *client);
	int		(*find_executable)(void *client, const unsigned char *id, int len,
					   char **path);
	int		(*find_debuginfo)(void *client, const unsigned char *id, int len,
					  char **path);
	void		(*set_progress)(void *client, int (*fn)(void *client, long a, long b));
	bool		ready;
	bool		given_up;
	long		timeout;
	time_t		asked;
	long		progress;
	bool		has_timed_out;
};

static struct fetcher fetcher;

static void init_lock(void)
{
	mutex_init(&fetcher.lock);
}

/* In seconds, as the timeout is */
static time_t now(void)
{
	return rdclock() / NSEC_PER_SEC;
}

/* The library calls this about once a second. Another value than 0 ends the search. */
static int give_up_late(void *client __maybe_unused, long a, long b)
{
	if ((b > 0 || a > MANY_ATTEMPTS) && a != fetcher.progress) {
		fetcher.progress = a;
		fetcher.asked = now();
	}
	if (now() - fetcher.asked < fetcher.timeout)
		return 0;
	fetcher.has_timed_out = true;
	return 1;
}

static bool load_library(void)
{
	void *lib = dlopen(LIBRARY, RTLD_LAZY | RTLD_LOCAL);
	const char *timeout = getenv("DEBUGINFOD_TIMEOUT");
	char buf[24];

	if (!lib) {
		pr_warning("DEBUGINFOD_URLS is set, but %s cannot be loaded. Install libdebuginfod1 (Debian) or elfutils-debuginfod-client (Fedora).\n",
			   LIBRARY);
		return false;
	}
	fetcher.begin = dlsym(lib, "debuginfod_begin");
	fetcher.end = dlsym(lib, "debuginfod_end");
	fetcher.find_executable = dlsym(lib, "debuginfod_find_executable");
	fetcher.find_debuginfo = dlsym(lib, "debuginfod_find_debuginfo");
	fetcher.set_progress = dlsym(lib, "debuginfod_set_progressfn");
	if (!fetcher.begin || !fetcher.end || !fetcher.find_executable ||
	    !fetcher.find_debuginfo || !fetcher.set_progress) {
		pr_warning("%s lacks functions and cannot be used.\n", LIBRARY);
		return false;
	}
	fetcher.timeout = timeout ? atol(timeout) : 0;
	if (fetcher.timeout <= 0)
		fetcher.timeout = DEFAULT_TIMEOUT;
	snprintf(buf, sizeof(buf), "%ld", fetcher.timeout);
	setenv("DEBUGINFOD_TIMEOUT", buf, 1);
	return true;
}

static bool is_ready(void)
{
	const char *urls = getenv("DEBUGINFOD_URLS");

	if (fetcher.given_up)
		return false;
	if (!fetcher.ready && urls && *urls)
		fetcher.ready = load_library();
	fetcher.given_up = !fetcher.ready;
	return fetcher.ready;
}

static char *ask(void *client, const char *id,
		 int (*find)(void *client, const unsigned char *id, int len, char **path))
{
	char *path = NULL;
	int fd;

	fetcher.asked = now();
	fetcher.progress = 0;
	fd = find(client, (const unsigned char *)id, 0, &path);
	if (fd >= 0) {
		close(fd);
		return path;
	}
	pr_debug("debuginfod: %s: %s\n", id, strerror(-fd));
	/* -ENOENT and -EINTR are what one file may be answered with. */
	if (fetcher.has_timed_out || fd == -ETIME || fd == -ECONNREFUSED ||
	    fd == -EHOSTUNREACH || fd == -ECONNRESET) {
		fetcher.given_up = true;
		pr_warning("debuginfod: %s: %s. It is not asked again, and names of functions may be missing.\n",
			   getenv("DEBUGINFOD_URLS"),
			   fetcher.has_timed_out || fd == -ETIME ?
			   "no answer within DEBUGINFOD_TIMEOUT" : strerror(-fd));
	}
	return NULL;
}

#ifdef HAVE_LIBELF_SUPPORT
static bool is_stripped(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	Elf *elf = fd < 0 ? NULL : elf_begin(fd, ELF_C_READ, NULL);
	Elf_Scn *section = NULL;
	bool stripped = true;
	GElf_Shdr header;

	while (elf && (section = elf_nextscn(elf, section)) != NULL) {
		if (gelf_getshdr(section, &header) && header.sh_type == SHT_SYMTAB)
			stripped = false;
	}
	elf_end(elf);
	if (fd >= 0)
		close(fd);
	return stripped;
}
#else
static bool is_stripped(const char *path __maybe_unused)
{
	return true;
}
#endif

/* The cache has a place for the debug file of a program. */
static void add_debug_file(const char *id, const char *name, const char *debug)
{
	char *dir = build_id_cache__cachedir(id, name, NULL, false, false), *file;

	if (dir && asprintf(&file, "%s/debug", dir) >= 0) {
		if (link(debug, file) && errno != EEXIST && copyfile(debug, file))
			pr_debug("debuginfod: cannot write %s: %m\n", file);
		free(file);
	}
	free(dir);
}

static bool fetch(const char *id, const char *name)
{
	void *client = fetcher.begin();
	char *file, *debug = NULL;
	bool added = false;

	if (!client)
		return false;
	fetcher.set_progress(client, give_up_late);
	file = ask(client, id, fetcher.find_executable);
	if (file && is_stripped(file) && !fetcher.given_up)
		debug = ask(client, id, fetcher.find_debuginfo);
	fetcher.end(client);
	if (file)
		added = !build_id_cache__add(id, file, file, NULL, false, false, name, NULL);
	if (added && debug)
		add_debug_file(id, name, debug);
	pr_debug("debuginfod: %s (%s): %s\n", name, id, added ? "fetched" : "not fetched");
	free(debug);
	free(file);
	return added;
}

/**
 * dso__fetch - fetch the file of a dso that is not here
 * @dso: the dso
 * @nsc: the mount namespace that the caller has entered for the dso, or its own
 *
 * Does nothing unless DEBUGINFOD_URLS is set. The kernel is not asked for.
 *
 * Return: whether the build-id cache has it now, and did not have it before.
 */
bool dso__fetch(struct dso *dso, struct nscookie *nsc)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	char id[SBUILD_ID_SIZE];
	bool fetched = false;

	if (!dso__has_build_id(dso) || *dso__long_name(dso) != '/')
		return false;
	pthread_once(&once, init_lock);
	build_id__snprintf(dso__bid(dso), id, sizeof(id));
	nsinfo__mountns_exit(nsc);
	mutex_lock(&fetcher.lock);
	if (!build_id_cache__cached(id) && is_ready())
		fetched = fetch(id, dso__long_name(dso));
	mutex_unlock(&fetcher.lock);
	nsinfo__mountns_enter(dso__nsinfo(dso), nsc);
	return fetched;
}
