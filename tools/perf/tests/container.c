// SPDX-License-Identifier: GPL-2.0
/*
 * The container and the pod that a path of a cgroup names, and what a manifest tells of them
 */
#include "tests.h"
#include "debug.h"
#include "util/container.h"
#include "util/flight/dump/manifest.h"
#include "util/flight/trigger/cause.h"

#include <linux/kernel.h>
#include <linux/perf_persistent.h>
#include <linux/string.h>
#include <linux/types.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ID	"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define OTHER	"fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"
#define UID	"6f2c1d3e-0a4b-4c5d-8e9f-123456789abc"
#define UID_	"6f2c1d3e_0a4b_4c5d_8e9f_123456789abc"
#define UID2	"00000000-0000-0000-0000-000000000002"
#define HASH	"8f8e7c1b2d3a4f5e6d7c8b9a0f1e2d3c"
#define PODS	"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod"

static const struct {
	const char *path, *id, *pod;
} paths[] = {
	/* As runtimes name them */
	{ "/system.slice/docker-" ID ".scope",			ID,	"" },
	{ "/docker/" ID,					ID,	"" },
	{ "/machine.slice/libpod-" ID ".scope",			ID,	"" },
	{ "/machine.slice/libpod-" ID ".scope/container",	ID,	"" },
	{ "/libpod_parent/libpod-" ID,				ID,	"" },
	{ "/system.slice/web.service/libpod-payload-" ID "/init.scope", ID, "" },
	{ PODS UID_ ".slice/cri-containerd-" ID ".scope",	ID,	UID },
	{ PODS UID_ ".slice/crio-" ID ".scope",			ID,	UID },
	{ PODS UID_ ".slice/docker-" ID ".scope",		ID,	UID },
	{ "/kubepods.slice/kubepods-pod" UID_ ".slice/cri-containerd-" ID ".scope", ID, UID },
	{ "/kubepods/besteffort/pod" UID "/" ID,		ID,	UID },
	{ "/kubepods/pod" UID "/crio-" ID,			ID,	UID },
	{ "/system.slice/containerd.service/kubepods-besteffort-pod" UID_
	  ".slice:cri-containerd:" ID,				ID,	UID },
	/* Static pods */
	{ PODS HASH ".slice/cri-containerd-" ID ".scope",	ID,	HASH },
	{ "/kubepods/burstable/pod" HASH "/" ID,		ID,	HASH },
	/* The innermost one counts. A pod in a container is not that container. */
	{ "/docker/" OTHER "/docker/" ID,			ID,	"" },
	{ "/docker/" OTHER "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod" UID_
	  ".slice/cri-containerd-" ID ".scope",			ID,	UID },
	{ "/docker/" OTHER "/kubepods/pod" UID,			"",	UID },
	{ "/kubepods/pod" UID2 "/" OTHER "/kubepods/pod" UID "/" ID, ID, UID },
	{ "/kubepods/pod" UID "/" OTHER "/docker/" ID,		ID,	UID },
	{ PODS UID_ ".slice",					"",	UID },
	/* What watches a container is not in it. */
	{ "/machine.slice/libpod-conmon-" ID ".scope",		"",	"" },
	{ "/libpod_parent/libpod-conmon-" ID,			"",	"" },
	{ "/system.slice/crio-conmon-" ID ".scope",		"",	"" },
	{ PODS UID_ ".slice/crio-conmon-" ID ".scope",		"",	UID },
	{ "/system.slice/" ID ".service",			"",	"" },
	{ "/system.slice/" ID "-5a2b.service",			"",	"" },
	{ "/machine.slice/machine-libpod_pod_" ID ".slice",	"",	"" },
	/* No names of runtimes, or not the whole name */
	{ "",							"",	"" },
	{ "/",							"",	"" },
	{ "/user.slice/user-0.slice/session-1.scope",		"",	"" },
	{ "/system.slice/docker.service",			"",	"" },
	{ "/system.slice/docker-" ID ".scope.d",		"",	"" },
	{ "/system.slice/my-docker-" ID ".scope",		"",	"" },
	{ "/system.slice/docker_" ID,				"",	"" },
	{ "/docker/" ID "0",					"",	"" },
	{ "/docker/0" ID,					"",	"" },
	{ "/docker/0123456789AB" ID,				"",	"" },
	{ "/docker/0123456789ab",				"",	"" },
	{ "/a/b.slice:conmon:" ID,				"",	"" },
	{ "/pod" UID,						"",	"" },
	{ "/notkubepods/pod" UID,				"",	"" },
	{ "/kubepods/pod" UID_,					"",	"" },
	{ "/kubepods/xpod" UID,					"",	"" },
	{ "/kubepods/pod" UID "0",				"",	"" },
	{ "/kubepods/pod6f2c1d3e",				"",	"" },
	{ "/kubepods.slice/kubepods-pod" UID ".slice",		"",	"" },
	{ "/kubepods.slice/.slice/:/::/docker-/.scope/pod",	"",	"" },
};

/* In memory of its own, so that a checker of memory sees what is read behind it */
static bool is_right(size_t i)
{
	struct container c;
	char *path = strdup(paths[i].path);
	bool found;

	if (!path)
		return false;
	found = container__of_cgroup(&c, path);
	free(path);
	pr_debug("%s: container \"%s\", pod \"%s\"\n", paths[i].path, c.id, c.pod);
	return !strcmp(c.id, paths[i].id) && !strcmp(c.pod, paths[i].pod) &&
	       found == (*c.id || *c.pod);
}

static int test__container_paths(struct test_suite *test __maybe_unused,
				 int subtest __maybe_unused)
{
	int ret = TEST_OK;

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		if (!is_right(i)) {
			pr_debug("That is wrong: container \"%s\", pod \"%s\"\n", paths[i].id,
				 paths[i].pod);
			ret = TEST_FAIL;
		}
	}
	return ret;
}

static bool has_line(const char *text, const char *key, const char *value)
{
	char *line;
	bool has;

	if (asprintf(&line, "  \"%s\": \"%s\",\n", key, value) < 0)
		return false;
	has = strstr(text, line);
	free(line);
	return has;
}

/* The end of a path tells the container, so a cause has all of it. */
static int test__container_manifest(struct test_suite *test __maybe_unused,
				    int subtest __maybe_unused)
{
	static const char end[] = PODS UID_ ".slice/cri-containerd-" ID ".scope";
	struct flight_cause cause = {};
	const struct manifest m = {
		.file = "f", .time = "t", .trigger = "oom", .reason = "r", .action = "dump",
		.self = "filtered", .cause = &cause, .cpus_left_out = "",
		.session = &(const struct perf_persistent_session_info) {},
	};
	char path[PATH_MAX];
	char *text = NULL;
	size_t len = 0, size;
	FILE *f = open_memstream(&text, &size);
	int ret = TEST_FAIL;

	if (!f)
		return TEST_FAIL;
	/* As long as a path can be */
	while (len + 3 < sizeof(path) - sizeof(end))
		len += snprintf(path + len, sizeof(path) - len, "/ab");
	snprintf(path + len, sizeof(path) - len, "%s", end);
	snprintf(cause.cgroup, sizeof(cause.cgroup), "%s", path);
	if (!manifest__write(&m, f) && !fclose(f) &&
	    has_line(text, "trigger_cgroup", path) &&
	    has_line(text, "trigger_container", ID) &&
	    has_line(text, "trigger_pod_uid", UID))
		ret = TEST_OK;
	pr_debug("%s", text ?: "");
	free(text);
	return ret;
}

static struct test_case tests__container[] = {
	TEST_CASE("Containers in paths of cgroups", container_paths),
	TEST_CASE("Containers in a manifest", container_manifest),
	{	.name = NULL, }
};

struct test_suite suite__container = {
	.desc = "Containers",
	.test_cases = tests__container,
};
