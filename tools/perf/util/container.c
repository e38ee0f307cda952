// SPDX-License-Identifier: GPL-2.0
/*
 * The container and the pod that the path of a cgroup names
 *
 * The runtimes of containers put the id of a container, 64 hexadecimal digits, into the name
 * of its cgroup, and Kubernetes puts the uid of a pod into the name of the pod's:
 *
 *	docker-ID.scope				Docker with systemd; cri-dockerd
 *	cri-containerd-ID.scope			containerd with systemd
 *	crio-ID.scope, crio-ID			CRI-O
 *	libpod-ID.scope, libpod-ID		Podman
 *	libpod-payload-ID			Podman with --cgroups=split
 *	ID					Docker and containerd without systemd
 *	SLICE:cri-containerd:ID			a name for systemd, used without it
 *
 *	kubepods-CLASS-podUID.slice		systemd: the uid has _ instead of -
 *	kubepods/CLASS/podUID			without systemd
 *
 * Only a whole name counts. That of a process that watches a container has a further word in
 * it, and such a process is not in the container: libpod-conmon-ID.scope. A name that begins
 * with an id is that of a unit about a container, such as the health check ID-NUMBER.service.
 *
 * Containers may be nested. The innermost one counts. It has named its cgroup itself if it
 * may make cgroups: the path tells what the names are, not who gave them.
 */
#include "container.h"

#include <linux/kernel.h>
#include <linux/types.h>
#include <string.h>

#define HEX_DIGITS	"0123456789abcdef"

/* The uid of a pod is a UUID. That of a static pod is a hash, without hyphens. */
#define HASH_LEN	32

static const char *const runtimes[] = {
	"", "docker", "cri-containerd", "crio", "libpod", "libpod-payload",
};

/* @name: @len bytes, without a NUL */
static bool ends_with(const char *name, size_t len, const char *end)
{
	size_t end_len = strlen(end);

	return len >= end_len && !memcmp(name + len - end_len, end, end_len);
}

static bool is_hex(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (!s[i] || !strchr(HEX_DIGITS, s[i]))
			return false;
	}
	return true;
}

/* Is a name that of a container, with @after between the runtime and the id? */
static bool has_id(const char *name, size_t len, char after)
{
	size_t before = len - CONTAINER_ID_LEN;

	if (len < CONTAINER_ID_LEN || !is_hex(name + before, CONTAINER_ID_LEN))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(runtimes); i++) {
		size_t n = strlen(runtimes[i]);

		if (!n && !before)
			return true;
		if (n && before == n + 1 && !memcmp(name, runtimes[i], n) && name[n] == after)
			return true;
	}
	return false;
}

static void read_id(struct container *c, const char *name, size_t len)
{
	const char *colon = memchr(name, ':', len);

	if (ends_with(name, len, ".scope"))
		len -= strlen(".scope");
	if (!has_id(name, len, '-')) {
		if (!colon || !has_id(colon + 1, name + len - (colon + 1), ':'))
			return;
	}
	memcpy(c->id, name + len - CONTAINER_ID_LEN, CONTAINER_ID_LEN);
	c->id[CONTAINER_ID_LEN] = '\0';
}

/* Groups of 8, 4, 4, 4 and 12 digits */
static bool is_uuid(const char *s, char hyphen)
{
	for (size_t i = 0; i < CONTAINER_POD_LEN; i++) {
		bool between = i == 8 || i == 13 || i == 18 || i == 23;

		if (between ? s[i] != hyphen : !is_hex(&s[i], 1))
			return false;
	}
	return true;
}

/* @len: of the uid at the end of @name, if it is one; what is before it ends with "pod". */
static bool has_uid(const char *name, size_t len, size_t uid_len, bool slice)
{
	const char *uid = name + len - uid_len;

	if (len < uid_len || !ends_with(name, len - uid_len, slice ? "-pod" : "pod"))
		return false;
	/* Without systemd, nothing else is in the name. */
	if (!slice && len != uid_len + strlen("pod"))
		return false;
	if (uid_len == HASH_LEN)
		return is_hex(uid, HASH_LEN);
	return is_uuid(uid, slice ? '_' : '-');
}

static bool read_pod(struct container *c, const char *name, size_t len)
{
	bool slice = ends_with(name, len, ".slice");
	size_t uid_len;

	if (slice)
		len -= strlen(".slice");
	if (has_uid(name, len, CONTAINER_POD_LEN, slice))
		uid_len = CONTAINER_POD_LEN;
	else if (has_uid(name, len, HASH_LEN, slice))
		uid_len = HASH_LEN;
	else
		return false;
	memcpy(c->pod, name + len - uid_len, uid_len);
	c->pod[uid_len] = '\0';
	for (size_t i = 0; i < uid_len; i++) {
		if (c->pod[i] == '_')
			c->pod[i] = '-';
	}
	return true;
}

/* kubepods, kubepods.slice and kubepods-CLASS.slice, also below another name, as kubelet- */
static bool is_kubepods(const char *name, size_t len)
{
	static const char word[] = "kubepods";
	size_t word_len = strlen(word);

	for (size_t i = 0; i + word_len <= len; i++) {
		if (memcmp(name + i, word, word_len) || (i && name[i - 1] != '-'))
			continue;
		if (i + word_len == len || strchr("-.", name[i + word_len]))
			return true;
	}
	return false;
}

/**
 * container__of_cgroup - find out which container a cgroup is of
 * @c: what to set
 * @path: path of the cgroup; it may be of any length, and hold anything
 *
 * Return: false if it names neither a container nor a pod.
 */
bool container__of_cgroup(struct container *c, const char *path)
{
	bool kubepods = false;
	size_t len;

	c->id[0] = '\0';
	c->pod[0] = '\0';
	for (; *path; path += len ?: 1) {
		len = strcspn(path, "/");
		kubepods |= is_kubepods(path, len);
		/* A pod inside a container: the id of the outer container does not count. */
		if (kubepods && read_pod(c, path, strcspn(path, "/:")))
			c->id[0] = '\0';
		read_id(c, path, len);
	}
	return c->id[0] || c->pod[0];
}
