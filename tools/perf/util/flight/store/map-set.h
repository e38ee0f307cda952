/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FLIGHT_MAP_SET_H
#define __PERF_FLIGHT_MAP_SET_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

union perf_event;
struct map_set;
struct map_table;
struct sideband_memory;

/**
 * typedef map_set_emit_t - take a map of a set
 * @event: the record as it was added, with the addresses that are left of it
 * @size: bytes of it
 * @data: argument of map_set__emit()
 *
 * Return: 0 to continue; any other value ends the walk and is returned.
 */
typedef int (*map_set_emit_t)(const union perf_event *event, size_t size, void *data);

struct map_table *map_table__new(struct sideband_memory *memory);
void map_table__delete(struct map_table *table);

int map_set__add(struct map_set **set, struct map_table *table, const union perf_event *event,
		 size_t size);
struct map_set *map_set__get(struct map_set *set);
void map_set__put(struct map_set *set, struct map_table *table);
int map_set__emit(const struct map_set *set, struct map_table *table, map_set_emit_t emit,
		  void *data);

#endif /* __PERF_FLIGHT_MAP_SET_H */
