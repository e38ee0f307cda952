// SPDX-License-Identifier: GPL-2.0
/*
 * The container and the pod that a path of a cgroup names, what files of runtimes and a manifest
 * tell of them
 */
#include "tests.h"
#include "debug.h"
#include "util/container.h"
#include "util/container-names.h"
#include "util/flight/dump/manifest.h"
#include "util/flight/trigger/cause.h"
#include "util/util.h"

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

#define CONTAINERD	"/run/containerd/io.containerd.runtime.v2.task"
#define STORAGE		"containers/storage/overlay-containers"
#define K8S(key)	"\"io.kubernetes." key "\": "

/* What the runtimes have of one container, and what that tells */
static const struct runtime_says {
	const char *path, *text, *name, *pod, *pod_namespace;
} runtimes[] = {
	{ CONTAINERD "/k8s.io/" ID "/config.json",
	  "{\"ociVersion\":\"1.1.0\",\"process\":{\"args\":[\"sh\"]},\"annotations\":{"
	  K8S("cri.container-name") "\"web\"," K8S("cri.sandbox-name") "\"shop-7d9\","
	  K8S("cri.sandbox-namespace") "\"shop\"}}", "web", "shop-7d9", "shop" },
	/* The container that holds the namespaces of a pod has no name. */
	{ CONTAINERD "/k8s.io/" ID "/config.json",
	  "{\"annotations\":{" K8S("cri.container-type") "\"sandbox\","
	  K8S("cri.sandbox-name") "\"shop-7d9\"}}", NULL, "shop-7d9", NULL },
	{ CONTAINERD "/default/" ID "/config.json",
	  "{\"annotations\": {\"nerdctl/name\": \"cache\"}}", "cache", NULL, NULL },
	{ "/run/" STORAGE "/" ID "/userdata/config.json",
	  "{\"annotations\": {" K8S("container.name") "\"db\", "
	  K8S("pod.name") "\"db-0\", " K8S("pod.namespace") "\"data\"}}", "db", "db-0", "data" },
	{ "/var/lib/docker/containers/" ID "/config.v2.json",
	  "{\"Config\":{\"Labels\":{}},\"Name\":\"/jolly_\\u00e9\"}", "jolly_\xc3\xa9", NULL,
	  NULL },
	{ "/var/lib/docker/containers/" ID "/config.v2.json",
	  "{\"Config\":{\"Labels\":{" K8S("container.name") "\"web\","
	  K8S("pod.name") "\"p\"," K8S("pod.namespace") "\"n\"}},\"Name\":\"/k8s_web_p_n_0\"}",
	  "web", "p", "n" },
	{ "/var/lib/" STORAGE "/containers.json",
	  "[{\"id\":\"" OTHER "\",\"names\":[\"wrong\"]},\n"
	  " {\"names\": [\"cache\", \"wrong\"], \"id\": \"" ID "\"}]", "cache", NULL, NULL },
	{ "/run/" STORAGE "/volatile-containers.json",
	  "[{\"id\":\"" ID "\",\"names\":[\"job\"]}]", "job", NULL, NULL },
	/* Nothing is known, and nothing breaks. */
	{ "/var/lib/" STORAGE "/containers.json", "[]", NULL, NULL, NULL },
	{ "/var/lib/" STORAGE "/containers.json",
	  "[1, \"" ID "\", [], {\"id\":\"" ID "\"}, {\"id\":\"" ID "\",\"names\":[]},\n"
	  "{\"id\":\"" ID "\",\"names\":[7", NULL, NULL, NULL },
	{ CONTAINERD "/k8s.io/" ID "/config.json", "", NULL, NULL, NULL },
	{ CONTAINERD "/k8s.io/" ID "/config.json",
	  "{\"annotations\":{" K8S("cri.container-name") "\"\","
	  K8S("cri.sandbox-name") "{}}}", NULL, NULL, NULL },
	{ CONTAINERD "/k8s.io/" OTHER "/config.json",
	  "{\"annotations\":{" K8S("cri.container-name") "\"web\"}}", NULL, NULL, NULL },
};

static bool is_same(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

static bool are_right(const struct container_names *names, const struct runtime_says *want)
{
	pr_debug("%s: name %s, pod %s, namespace %s\n", want->path, names->name ?: "none",
		 names->pod ?: "none", names->pod_namespace ?: "none");
	return is_same(names->name, want->name) && is_same(names->pod, want->pod) &&
	       is_same(names->pod_namespace, want->pod_namespace);
}

static bool write_text(const char *root, const struct runtime_says *says)
{
	char path[PATH_MAX], *slash;
	FILE *f;

	snprintf(path, sizeof(path), "%s%s", root, says->path);
	slash = strrchr(path, '/');
	*slash = '\0';
	if (mkdir_p(path, 0700))
		return false;
	*slash = '/';
	f = fopen(path, "w");
	return f && fputs(says->text, f) >= 0 && !fclose(f);
}

static int test__container_runtimes(struct test_suite *test __maybe_unused,
				    int subtest __maybe_unused)
{
	int ret = TEST_OK;

	for (size_t i = 0; i < ARRAY_SIZE(runtimes); i++) {
		const struct runtime_says *says = &runtimes[i];
		char root[] = "/tmp/perf-test-containers.XXXXXX";
		struct container_names names;
		bool known;

		if (!mkdtemp(root))
			return TEST_FAIL;
		if (!write_text(root, says)) {
			ret = TEST_FAIL;
		} else {
			known = container_names__read(&names, root, ID);
			if (!are_right(&names, says) ||
			    known != (says->name || says->pod || says->pod_namespace))
				ret = TEST_FAIL;
			container_names__exit(&names);
		}
		rm_rf(root);
	}
	return ret;
}

/* Of what a manifest has kept, that of the container alone */
static int test__container_kept(struct test_suite *test __maybe_unused,
				int subtest __maybe_unused)
{
	static const char manifest[] = "{\"containers\": {\n"
		"\"" OTHER "\": { \"name\": \"wrong\" },\n"
		"\"" ID "\": { \"name\": \"web\", \"pod\": \"shop-7d9\",\n"
		"\"pod_namespace\": \"shop\" } }}";
	static const struct runtime_says want = { "manifest", "", "web", "shop-7d9", "shop" };
	const struct container c = { .id = ID }, pod = { .pod = UID };
	struct container_names names;
	int ret = TEST_FAIL;

	if (container_names__of_manifest(&names, manifest, &c) && are_right(&names, &want))
		ret = TEST_OK;
	container_names__exit(&names);
	if (container_names__of_manifest(&names, manifest, &pod) ||
	    container_names__of_manifest(&names, "{\"containers\": 1}", &c) ||
	    container_names__of_manifest(&names, NULL, &c))
		ret = TEST_FAIL;
	return ret;
}

static struct test_case tests__container[] = {
	TEST_CASE("Containers in paths of cgroups", container_paths),
	TEST_CASE("Containers in a manifest", container_manifest),
	TEST_CASE("Containers in files of their runtimes", container_runtimes),
	TEST_CASE("Containers in a manifest that is read", container_kept),
	{	.name = NULL, }
};

struct test_suite suite__container = {
	.desc = "Containers",
	.test_cases = tests__container,
};
