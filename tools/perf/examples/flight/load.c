// SPDX-License-Identifier: GPL-2.0
/*
 * Load a BPF program, attach it, and pin it so that it stays loaded after exit
 *
 * Each map and each attached program becomes a file in DIR, which is created. Remove
 * the files to unload the program. VARIABLE=NUMBER sets a 64-bit global variable of
 * the program.
 */
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int fail(const char *what, const char *name)
{
	fprintf(stderr, "%s %s: %s\n", what, name, strerror(errno));
	return 1;
}

/* Find the offset of a variable in .data with the BTF of the program. */
static long long offset_of(struct bpf_object *object, const char *name)
{
	const struct btf *btf = bpf_object__btf(object);
	int section = btf ? btf__find_by_name_kind(btf, ".data", BTF_KIND_DATASEC) : -1;
	const struct btf_type *type = section > 0 ? btf__type_by_id(btf, section) : NULL;
	const struct btf_var_secinfo *var = type ? btf_var_secinfos(type) : NULL;

	for (int i = 0; type && i < btf_vlen(type); i++, var++) {
		const struct btf_type *t = btf__type_by_id(btf, var->type);

		if (!strcmp(btf__name_by_offset(btf, t->name_off), name))
			return var->size == sizeof(long long) ? (long long)var->offset : -1;
	}
	return -1;
}

static int set_variable(struct bpf_object *object, char *assignment)
{
	struct bpf_map *map = bpf_object__find_map_by_name(object, ".data");
	char *equals = strchr(assignment, '='), *data;
	long long offset, value;
	size_t size;

	if (!equals || !map)
		return fail("no such variable:", assignment);
	*equals = '\0';
	value = strtoll(equals + 1, NULL, 0);
	offset = offset_of(object, assignment);
	data = (char *)bpf_map__initial_value(map, &size);
	errno = ENOENT;
	if (offset < 0 || !data || offset + sizeof(value) > size)
		return fail("no such variable:", assignment);
	memcpy(data + offset, &value, sizeof(value));
	return 0;
}

static int attach_all(struct bpf_object *object, const char *dir)
{
	struct bpf_program *program;
	char path[4096];

	bpf_object__for_each_program(program, object) {
		struct bpf_link *link = bpf_program__attach(program);

		if (!link)
			return fail("cannot attach", bpf_program__name(program));
		snprintf(path, sizeof(path), "%s/%s", dir, bpf_program__name(program));
		if (bpf_link__pin(link, path))
			return fail("cannot pin", path);
		bpf_link__disconnect(link);
		bpf_link__destroy(link);
	}
	return 0;
}

static int pin_maps(struct bpf_object *object, const char *dir)
{
	struct bpf_map *map;
	char path[4096];

	bpf_object__for_each_map(map, object) {
		/* The maps of global variables have a dot in their names. */
		if (strchr(bpf_map__name(map), '.'))
			continue;
		snprintf(path, sizeof(path), "%s/%s", dir, bpf_map__name(map));
		if (bpf_map__pin(map, path))
			return fail("cannot pin", path);
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct bpf_object *object;
	int err = 0;

	if (argc < 3) {
		fprintf(stderr, "usage: %s PROGRAM.bpf.o DIR [VARIABLE=NUMBER]...\n", argv[0]);
		return 2;
	}
	object = bpf_object__open_file(argv[1], NULL);
	if (!object)
		return fail("cannot open", argv[1]);
	for (int i = 3; i < argc && !err; i++)
		err = set_variable(object, argv[i]);
	if (!err && bpf_object__load(object))
		err = fail("cannot load", argv[1]);
	if (!err && mkdir(argv[2], 0700) && errno != EEXIST)
		err = fail("cannot create", argv[2]);
	if (!err)
		err = pin_maps(object, argv[2]) || attach_all(object, argv[2]);
	bpf_object__close(object);
	return err;
}
