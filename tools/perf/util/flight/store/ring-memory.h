/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FLIGHT_RING_MEMORY_H
#define __PERF_FLIGHT_RING_MEMORY_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

struct ring_memory;

struct ring_memory *ring_memory__new(u64 size);
void ring_memory__delete(struct ring_memory *rm);

void ring_memory__set_budget(struct ring_memory *rm, u64 budget);
bool ring_memory__extend(struct ring_memory *rm, u64 end);
void ring_memory__release(struct ring_memory *rm, u64 pos);
void *ring_memory__at(const struct ring_memory *rm, u64 pos, size_t *left);

void ring_memory__note_round(struct ring_memory *rm, u64 pos);
u64 ring_memory__round_after(const struct ring_memory *rm, u64 pos, u64 end);

void ring_memory__fence(struct ring_memory *rm);
void ring_memory__unfence(struct ring_memory *rm);

void ring_memory__passed(struct ring_memory *rm, u64 pos);
u64 ring_memory__taken(const struct ring_memory *rm);

u64 ring_memory__used(const struct ring_memory *rm);

#endif /* __PERF_FLIGHT_RING_MEMORY_H */
