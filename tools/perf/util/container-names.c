// SPDX-License-Identifier: GPL-2.0
/*
 * The names of a container
 *
 * The path of a cgroup has the id of a container alone. What people call it is in files of the
 * runtime, as long as the container exists:
 *
 *	containerd	config.json of its bundle has annotations of the CRI, or of nerdctl
 *	CRI-O		config.json of its bundle has annotations
 *	Docker		config.v2.json has labels of Kubernetes, and a name
 *	Podman		the list of containers in its storage
 *
 * None of them is an interface that is promised, and only root may read them. So what is not
 * there, or is written otherwise, is not known, and that is no error. The creator of a
 * container chooses its names: they can hold anything.
 *
 * The flight recorder reads them when it writes a dump, and keeps them in the manifest. Later, or
 * on another machine, that is where they come from.
 */
#include "container-names.h"

#include "container.h"
#include "json-reader.h"

#include <linux/kernel.h>
#include <linux/zalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUNDLES		"/run/containerd/io.containerd.runtime.v2.task"
#define STORAGE		"containers/storage/overlay-containers"
#define MAX_DEPTH	2

/**
 * struct runtime_file - a file of a runtime about one container
 * @before: its path up to the id
 * @after: its path behind the id
 * @objects: the members that lead to the object with the names
 * @name: key of the container's name
 * @pod: key of the name of the pod, or NULL
 * @pod_namespace: key of its namespace, or NULL
 */
struct runtime_file {
	const char	*before;
	const char	*after;
	const char	*objects[MAX_DEPTH];
	const char	*name;
	const char	*pod;
	const char	*pod_namespace;
};

static const struct runtime_file files[] = {
	{ BUNDLES "/k8s.io/", "/config.json", { "annotations" },
	  "io.kubernetes.cri.container-name", "io.kubernetes.cri.sandbox-name",
	  "io.kubernetes.cri.sandbox-namespace" },
	{ "/run/" STORAGE "/", "/userdata/config.json", { "annotations" },
	  "io.kubernetes.container.name", "io.kubernetes.pod.name",
	  "io.kubernetes.pod.namespace" },
	{ "/var/lib/docker/containers/", "/config.v2.json", { "Config", "Labels" },
	  "io.kubernetes.container.name", "io.kubernetes.pod.name",
	  "io.kubernetes.pod.namespace" },
	{ "/var/lib/docker/containers/", "/config.v2.json", {}, "Name", NULL, NULL },
	{ BUNDLES "/default/", "/config.json", { "annotations" }, "nerdctl/name", NULL, NULL },
};

/* Lists of containers: those that stay, and those that go with the boot */
static const char *const lists[] = {
	"/var/lib/" STORAGE "/containers.json",
	"/run/" STORAGE "/volatile-containers.json",
};

/* The value of a member that is a string, for free(); "" is no name. */
static char *find_string(const char *object, const char *key)
{
	struct json_value value;
	char *string;

	if (!key || !json__find(object, key, &value))
		return NULL;
	string = json_value__strdup(&value);
	if (string && !*string)
		zfree(&string);
	return string;
}

static bool has_any(const struct container_names *names)
{
	return names->name || names->pod || names->pod_namespace;
}

static char *read_text(const char *root, const char *before, const char *id, const char *after)
{
	char *path, *text;

	if (asprintf(&path, "%s%s%s%s", root, before, id, after) < 0)
		return NULL;
	text = json__read_file(path);
	free(path);
	return text;
}

static bool read_file(struct container_names *names, const struct runtime_file *file,
		      const char *root, const char *id)
{
	char *text = read_text(root, file->before, id, file->after);
	const char *object = text;
	struct json_value value;

	for (int i = 0; object && i < MAX_DEPTH && file->objects[i]; i++)
		object = json__find(object, file->objects[i], &value) ? value.text : NULL;
	if (object) {
		names->name = find_string(object, file->name);
		names->pod = find_string(object, file->pod);
		names->pod_namespace = find_string(object, file->pod_namespace);
	}
	free(text);
	/* Docker writes it as a path. */
	if (names->name && *names->name == '/')
		memmove(names->name, names->name + 1, strlen(names->name));
	return has_any(names);
}

/* The first of the names of the container in a list of containers */
static bool read_list(struct container_names *names, const char *path, const char *root,
		      const char *id)
{
	char *text = read_text(root, path, "", "");
	struct json_value container, all, first;
	const char *pos = NULL;

	while (text && !names->name && json__next(text, &pos, &container)) {
		char *found = find_string(container.text, "id");

		if (found && !strcmp(found, id) && json__find(container.text, "names", &all)) {
			const char *in_all = NULL;

			if (json__next(all.text, &in_all, &first))
				names->name = json_value__strdup(&first);
		}
		free(found);
	}
	free(text);
	return has_any(names);
}

/**
 * container_names__read - ask the files of the runtimes
 * @names: what to set, for container_names__exit()
 * @root: of the files, "" unless that is another directory
 * @id: of the container
 *
 * It reads the disk.
 *
 * Return: whether a name was found.
 */
bool container_names__read(struct container_names *names, const char *root, const char *id)
{
	*names = (struct container_names) {};
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		if (read_file(names, &files[i], root, id))
			return true;
	}
	for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
		if (read_list(names, lists[i], root, id))
			return true;
	}
	return false;
}

/**
 * container_names__of_manifest - what the manifest of a dump tells
 * @names: what to set, for container_names__exit()
 * @manifest: its text, or NULL
 * @c: the container, or a pod alone
 *
 * Return: whether a name was found.
 */
bool container_names__of_manifest(struct container_names *names, const char *manifest,
				  const struct container *c)
{
	struct json_value all, one;

	*names = (struct container_names) {};
	if (!manifest || !*c->id || !json__find(manifest, "containers", &all) ||
	    !json__find(all.text, c->id, &one))
		return false;
	names->name = find_string(one.text, "name");
	names->pod = find_string(one.text, "pod");
	names->pod_namespace = find_string(one.text, "pod_namespace");
	return has_any(names);
}

void container_names__exit(struct container_names *names)
{
	zfree(&names->name);
	zfree(&names->pod);
	zfree(&names->pod_namespace);
}
