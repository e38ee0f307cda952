// SPDX-License-Identifier: GPL-2.0
/*
 * The containers of cgroups, for all formats
 *
 * The path of a cgroup has the id of the container and the uid of the pod, the manifest of a
 * dump has their names.
 */
#include "containers.h"

#include "container.h"
#include "container-names.h"
#include "tables.h"

#include <linux/kernel.h>
#include <stdlib.h>
#include <string.h>

/* Return whether there was memory. */
static bool set(u32 *nr, struct export_tables *tables, const char *string)
{
	if (string && *string)
		*nr = export_tables__string(tables, string);
	return *nr != INTERNER_FAILED;
}

static bool find(struct export_container *found, struct export_tables *tables,
		 const char *manifest, u32 cgroup)
{
	struct container_names names;
	struct container c;
	bool done;

	*found = (struct export_container) {};
	if (!container__of_cgroup(&c, export_tables__str(tables, cgroup)))
		return true;
	container_names__of_manifest(&names, manifest, &c);
	done = set(&found->id, tables, c.id) && set(&found->pod_uid, tables, c.pod) &&
	       set(&found->name, tables, names.name) && set(&found->pod, tables, names.pod) &&
	       set(&found->pod_namespace, tables, names.pod_namespace);
	container_names__exit(&names);
	return done;
}

/**
 * export_containers__get - the container of a cgroup
 * @ec: those seen so far
 * @tables: of the strings
 * @manifest: text of the manifest of the recording, or NULL
 * @cgroup: string, path of the cgroup
 *
 * Return: the container, valid until the next call; without one, nothing of it is known. NULL:
 * there is no memory.
 */
const struct export_container *export_containers__get(struct export_containers *ec,
						      struct export_tables *tables,
						      const char *manifest, u32 cgroup)
{
	bool fresh;
	u32 nr = interner__add(&ec->cgroups, &cgroup, sizeof(cgroup), &fresh);

	if (nr == INTERNER_FAILED)
		return NULL;
	if (nr >= ec->room) {
		u32 room = max(2 * ec->room, 64U);
		void *containers = realloc(ec->containers, room * sizeof(*ec->containers));

		if (!containers)
			return NULL;
		ec->containers = containers;
		ec->room = room;
	}
	if (fresh && !find(&ec->containers[nr], tables, manifest, cgroup))
		return NULL;
	return &ec->containers[nr];
}

void export_containers__exit(struct export_containers *ec)
{
	interner__exit(&ec->cgroups);
	free(ec->containers);
}
